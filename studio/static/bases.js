// Events of the page Bases. The same script serves all of its views; each trigger is one of the page's events.
const agreed = (button) => {
  const tick = button.closest('article, section').querySelector('[data-agree]');
  return Boolean(tick && tick.checked);
};
const look = (value) => {
  window.scrollTo({top: 0, behavior: 'smooth'});  // the answer stands at the top
  trigger('look', {act: 'look', value});
};
element.addEventListener('click', (event) => {
  const asking = event.target.closest('[data-ask]');
  const dialog = element.querySelector('dialog');
  if (asking) {
    dialog.querySelector('[data-name]').textContent = asking.dataset.ask;
    dialog.querySelector('p [data-freed]').textContent = asking.dataset.freed;
    dialog.querySelector('[data-act]').dataset.value = asking.dataset.ask;
    dialog.showModal();
    return;
  }
  const button = event.target.closest('[data-act]');
  if (button) {
    const field = element.querySelector('[name="origin"]');
    const value = button.dataset.value || (field ? field.value : '');
    if (button.dataset.act === 'look') look(value);
    else trigger('act', {act: button.dataset.act, value, agreed: agreed(button)});
  }
  if (dialog && (event.target.closest('[data-close]') || event.target === dialog)) dialog.close();
});
element.addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && event.target.name === 'origin') look(event.target.value);
});
element.addEventListener('change', (event) => {
  if (!event.target.closest('[data-pair]')) return;
  const choice = (name) => element.querySelector(`[data-pair="${name}"]`).value;
  trigger('pair', {source: choice('source'), target: choice('target')});
});
