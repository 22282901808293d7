element.addEventListener('click', (event) => {
  const button = event.target.closest('[data-sample]');
  if (button) trigger('choose', {name: button.dataset.sample, together: button.dataset.together || ''});
});
