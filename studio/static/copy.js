// Buttons with data-copy copy the field beside them.
element.addEventListener('click', async (event) => {
  const copy = event.target.closest('[data-copy]');
  if (!copy) return;
  const field = copy.parentElement.querySelector('input');
  const words = copy.dataset.words || copy.textContent;
  copy.dataset.words = words;
  field.select();
  try { await navigator.clipboard.writeText(field.value); } catch (error) { document.execCommand('copy'); }
  copy.textContent = tmSay('Copied');
  setTimeout(() => { copy.textContent = words; }, 1500);
});
