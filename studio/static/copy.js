// Buttons with data-copy copy the field beside them, or their data-text.
element.addEventListener('click', async (event) => {
  const copy = event.target.closest('[data-copy]');
  if (!copy) return;
  const field = copy.parentElement.querySelector('input');
  const words = copy.dataset.words || copy.textContent;
  copy.dataset.words = words;
  if (!copy.dataset.text) field.select();
  if (!await copied(copy.dataset.text || field.value, copy)) return;
  copy.textContent = tmSay('Copied');
  setTimeout(() => { copy.textContent = words; }, 1500);
});
async function copied(text, beside) {
  try { await navigator.clipboard.writeText(text); return true; } catch (error) { /* not over http, or not allowed */ }
  const box = Object.assign(document.createElement('textarea'), {value: text});
  beside.after(box);
  box.select();
  const done = document.execCommand('copy');
  box.remove();
  return done;
}
