const send = (button) => {
  const box = button.closest('[data-plugin]');
  const field = button.dataset.field && box.querySelector(`[name="${button.dataset.field}"]`);
  const number = button.dataset.number || (box && box.dataset.plugin) || '';
  trigger('act', {act: button.dataset.act, number, value: field ? field.value : ''});
};
element.addEventListener('click', (event) => {
  const button = event.target.closest('[data-act]');
  if (button) send(button);
  const ablate = event.target.closest('[data-ablate]');
  if (ablate) {
    const wish = {number: ablate.dataset.ablate};
    for (const field of ablate.closest('details').querySelectorAll('[name]')) wish[field.name] = field.value;
    trigger('ablate', wish);
  }
  const blend = event.target.closest('[data-blend]');
  if (!blend) return;
  const wish = {};
  for (const field of blend.closest('details').querySelectorAll('[name]')) wish[field.name] = field.value;
  trigger('blend', wish);
});
element.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || !event.target.matches('input[type=text]')) return;
  const label = event.target.closest('label');
  const button = label && label.nextElementSibling;
  if (button && button.dataset.act) send(button);
});
element.addEventListener('input', (event) => {
  if (event.target.type === 'range') event.target.nextElementSibling.textContent = Number(event.target.value);
});
element.addEventListener('change', (event) => {
  if ('default' in event.target.dataset) trigger('act', {act: 'default', number: event.target.value, value: ''});
});
