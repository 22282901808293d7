// The dialogs stay while the cards are shown anew; the cards' buttons find them in the page.
element.addEventListener('click', (event) => {
  const button = event.target.closest('[data-ask]');
  if (!button) return;
  const dialog = document.querySelector(`[data-dialog="${button.dataset.ask}"]`);
  dialog.dataset.project = button.dataset.project;
  const field = dialog.querySelector('input'), name = dialog.querySelector('[data-name]');
  if (field) field.value = button.dataset.name;
  if (name) {
    name.textContent = button.dataset.name;
    dialog.querySelector('[data-what]').textContent = button.dataset.what;
  }
  dialog.showModal();
  if (field) field.select();
});
