// Licences that were not accepted yet are asked for first.
element.addEventListener('click', (event) => {
  const start = event.target.closest('[data-start]'), dialog = element.querySelector('dialog');
  if (start && start.dataset.start) dialog.showModal();
  else if (start) trigger('start', {agreed: false});
  if (dialog && (event.target.closest('[data-close]') || event.target === dialog)) dialog.close();
});
element.addEventListener('submit', (event) => trigger('start', {agreed: event.target.elements.agreed.checked}));
