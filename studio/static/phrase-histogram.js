const choose = (event) => {
  const bar = event.target.closest('[data-low]');
  if (!bar || (event.type === 'keydown' && !['Enter', ' '].includes(event.key))) return;
  event.preventDefault();
  const on = bar.getAttribute('aria-pressed') === 'true';
  trigger('bar', {low: on ? '0' : bar.dataset.low, high: on ? '0' : bar.dataset.high, layer: on ? '-1' : bar.dataset.layer});
};
element.addEventListener('click', choose);
element.addEventListener('keydown', choose);
