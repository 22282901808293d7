// What the fields of the page hold, of whichever settings they are.
window.tmSettings = () => {
  const box = document.querySelector('[data-settings]');
  if (!box) return '';
  const values = {};
  for (const field of box.querySelectorAll('[data-kind]')) {
    (values[field.dataset.kind] ??= {})[field.name] = field.type === 'checkbox' ? field.checked : field.value;
  }
  return JSON.stringify({of: box.dataset.settings, values});
};
// Folded parts open and close, and stay so when the server writes the fields anew. Gradio then changes only what differs in
// the HTML, which leaves what was typed where it was: so every field is set to what was written.
const open = new Set();
const show = () => {
  for (const button of element.querySelectorAll('button[data-fold]')) {
    const there = open.has(button.dataset.fold);
    if (button.getAttribute('aria-expanded') !== String(there)) button.setAttribute('aria-expanded', String(there));
    button.nextElementSibling.hidden = !there;
  }
};
element.addEventListener('click', (event) => {
  const button = event.target.closest('button[data-fold]');
  if (!button) return;
  if (!open.delete(button.dataset.fold)) open.add(button.dataset.fold);
  show();
});
element.addEventListener('change', () => trigger('settle', {held: window.tmSettings()}));
new MutationObserver(() => {
  for (const field of element.querySelectorAll('[data-kind]')) {
    if (field.tagName === 'SELECT') for (const choice of field.options) choice.selected = choice.defaultSelected;
    else if (field.type === 'checkbox') field.checked = field.defaultChecked;
    else field.value = field.defaultValue;
  }
  show();
}).observe(element, {subtree: true, childList: true, attributeFilter: ['data-written']});
