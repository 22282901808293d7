const pick = (event) => {
  if (event.target.closest('input')) return;
  const row = event.target.closest('tr[data-key]');
  if (!row || (event.type === 'keydown' && event.key !== 'Enter')) return;
  element.querySelectorAll('tr[aria-selected]').forEach((row) => row.removeAttribute('aria-selected'));
  row.setAttribute('aria-selected', 'true');
  trigger('pick', {phrase: row.dataset.key});
};
element.addEventListener('click', pick);
element.addEventListener('keydown', pick);
// A tick that the user changed keeps its state when rows are put in its place: the row says what it is.
watch('value', () => element.querySelectorAll('[data-keep]').forEach((box) => { box.checked = box.hasAttribute('checked'); }));
element.addEventListener('change', (event) => {
  const box = event.target.closest('[data-keep]');
  if (box) trigger('keep', {phrase: box.dataset.keep, keep: box.checked});
});
