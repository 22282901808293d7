window.tmSay = (text, values) => Object.entries(values || {}).reduce(
  (result, [name, value]) => result.replaceAll(`{${name}}`, value), window.tmWords[text] || text);
Object.defineProperty(navigator, 'language', {get: () => window.tmTag, configurable: true});
