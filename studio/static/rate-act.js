element.addEventListener('click', async (event) => {
  const button = event.target.closest('[data-act]');
  if (button) trigger('act', {act: button.dataset.act, number: button.dataset.number || ''});
  const copy = event.target.closest('[data-copy]');
  if (!copy) return;
  const field = copy.parentElement.querySelector('input');
  field.select();
  try { await navigator.clipboard.writeText(field.value); } catch (error) { document.execCommand('copy'); }
  copy.textContent = tmSay('Copied');
  setTimeout(() => { copy.textContent = tmSay('Copy link'); }, 1500);
});
