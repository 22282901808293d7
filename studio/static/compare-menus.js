element.addEventListener('toggle', (event) => {
  if (!event.target.open || !event.target.matches('.tm-menu')) return;
  element.querySelectorAll('.tm-menu[open]').forEach((menu) => { if (menu !== event.target) menu.open = false; });
  const link = event.target.querySelector('[data-link]');
  if (link) link.value = window.location.href;
}, true);
element.addEventListener('click', async (event) => {
  if (event.target.closest('[data-remove]')) trigger('remove', {});
  const copy = event.target.closest('[data-share]');
  if (!copy) return;
  const link = element.querySelector('[data-link]');
  link.value = window.location.href;
  trigger('keep', {title: element.querySelector('[data-title]').value});
  link.select();
  try { await navigator.clipboard.writeText(link.value); } catch (error) { document.execCommand('copy'); }
  copy.textContent = tmSay('Copied');
  setTimeout(() => { copy.textContent = tmSay('Copy link'); }, 2000);
});
element.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape') return;
  const open = element.querySelector('details[open]');
  if (open) { open.open = false; open.querySelector('summary').focus(); }
});
const outside = (event) => {
  if (!element.isConnected) document.removeEventListener('click', outside);  // another step was opened
  else if (!element.contains(event.target))
    element.querySelectorAll('details[open]').forEach((menu) => { menu.open = false; });
};
document.addEventListener('click', outside);
