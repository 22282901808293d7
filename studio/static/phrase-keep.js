element.addEventListener('click', (event) => {
  const button = event.target.closest('button[data-keep]');
  if (button) trigger('keep', {phrase: button.dataset.keep, keep: button.dataset.on === 'true'});
});
