(method, ...others) => [window.tmMethod?.() || method, ...others.slice(0, -1), window.tmSettings?.() || others.at(-1)]
