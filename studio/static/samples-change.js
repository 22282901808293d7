element.addEventListener('click', (event) => {
  const button = event.target.closest('[data-remove]');
  if (button) trigger('remove', {name: button.dataset.remove});
  const dismiss = event.target.closest('[data-dismiss]');
  if (dismiss) trigger('dismiss', {name: dismiss.dataset.dismiss});
  const restore = event.target.closest('[data-restore]');
  if (restore) trigger('restore', {name: restore.dataset.restore});
  if (event.target.closest('[data-again]')) trigger('again');
  const untest = event.target.closest('[data-untest]');
  if (untest) trigger('untest', {name: untest.dataset.untest});
  const link = event.target.closest('a[data-go]');
  if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    trigger('go', {to: link.dataset.go});
  }
});
element.addEventListener('change', (event) => {
  const field = event.target.closest('[data-domain]');
  if (field) trigger('relabel', {name: field.dataset.domain, label: field.value});
});
