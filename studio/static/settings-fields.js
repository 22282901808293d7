// What the fields of the page hold, of whichever settings they are.
window.tmSettings = () => {
  const box = document.querySelector('[data-settings]');
  if (!box) return '';
  const found = {};
  for (const one of box.querySelectorAll('[data-kind]')) {
    (found[one.dataset.kind] ??= {})[one.name] = one.type === 'checkbox' ? one.checked : one.value;
  }
  return JSON.stringify({of: box.dataset.settings, values: found});
};
// Folded parts open and close, and stay so when the server writes the fields anew. Gradio then changes only what differs in
// the HTML, which leaves what was typed where it was: so every field is set to what was written.
const open = new Set();
const show = () => {
  for (const one of element.querySelectorAll('button[data-fold]')) {
    const there = open.has(one.dataset.fold);
    if (one.getAttribute('aria-expanded') !== String(there)) one.setAttribute('aria-expanded', String(there));
    one.nextElementSibling.hidden = !there;
  }
};
element.addEventListener('click', (event) => {
  const one = event.target.closest('button[data-fold]');
  if (!one) return;
  if (!open.delete(one.dataset.fold)) open.add(one.dataset.fold);
  show();
});
element.addEventListener('change', () => trigger('settle', {held: window.tmSettings()}));
new MutationObserver(() => {
  for (const one of element.querySelectorAll('[data-kind]')) {
    if (one.tagName === 'SELECT') for (const choice of one.options) choice.selected = choice.defaultSelected;
    else if (one.type === 'checkbox') one.checked = one.defaultChecked;
    else one.value = one.defaultValue;
  }
  show();
}).observe(element, {subtree: true, childList: true, attributeFilter: ['data-written']});
