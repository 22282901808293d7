// The method that is chosen, before the server has answered too.
window.tmMethod = () => element.querySelector('[data-method][aria-checked="true"]')?.dataset.method;
// Choosing is shown at once, before the server answers; arrows move as they do among radio buttons.
const cards = () => [...element.querySelectorAll('[data-method]:not([disabled])')].filter((other) => other.offsetParent);
const choose = (card) => {
  for (const other of element.querySelectorAll('[data-method]')) {
    other.setAttribute('aria-checked', other === card ? 'true' : 'false');
    other.tabIndex = other === card ? 0 : -1;
  }
  card.focus();
  trigger('choose', {name: card.dataset.method});
};
element.addEventListener('click', (event) => {
  const card = event.target.closest('[data-method]');
  if (card && !card.disabled) choose(card);
});
element.addEventListener('keydown', (event) => {
  const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
  const card = event.target.closest('[data-method]');
  if (!step || !card) return;
  event.preventDefault();
  const all = cards();
  choose(all[(all.indexOf(card) + step + all.length) % all.length]);
});
