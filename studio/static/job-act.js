element.addEventListener('click', (event) => {
  const button = event.target.closest('[data-act]');
  if (button) trigger('act', {act: button.dataset.act, job: button.dataset.job});
});
