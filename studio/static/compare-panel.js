const show = (key) => {
  element.querySelectorAll('[data-of]').forEach((part) => { part.hidden = part.dataset.of !== key; });
  element.querySelectorAll('[data-layer]').forEach((part) => part.setAttribute('aria-pressed', part.dataset.layer === key));
  const at = element.querySelector('[data-at]');
  if (at) at.value = key;
};
const close = () => {
  document.querySelectorAll('.tm-words .w.chosen').forEach((part) => part.classList.remove('chosen'));
  trigger('close', {});
};
element.addEventListener('change', (event) => { if (event.target.matches('[data-at]')) show(event.target.value); });
element.addEventListener('click', (event) => {
  const layer = event.target.closest('[data-layer]');
  if (layer) show(layer.dataset.layer);
  if (event.target.closest('[data-close]')) close();
  const long = event.target.closest('.tm-read li');
  if (long && !String(window.getSelection())) long.classList.toggle('whole');
});
element.addEventListener('keydown', (event) => { if (event.key === 'Escape') close(); });
