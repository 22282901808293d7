element.addEventListener('click', (event) => {
  const dialog = event.target.closest('dialog');
  if (event.target.closest('[data-close]') || event.target === dialog) dialog.close();
});
element.addEventListener('submit', (event) => {
  const dialog = event.target.closest('dialog');
  const project = dialog.dataset.project;
  if (dialog.dataset.dialog === 'rename') trigger('rename', {project, name: dialog.querySelector('input').value});
  else trigger('delete', {project});
});
