// What a page shows stands in its address, without a reload; an empty value is left out of it.
window.tmAddress = (values) => {
  const address = new URL(window.location.href);
  for (const [name, value] of Object.entries(values)) {
    if (value) address.searchParams.set(name, value); else address.searchParams.delete(name);
  }
  window.history.replaceState(null, '', address);
};
// What stands there under a name, or nothing.
window.tmParameter = (name) => new URL(window.location.href).searchParams.get(name) || '';
// A double click is one click: the second part of it begins nothing again, nor what the first has brought under the pointer, be it
// "Resume" in the place of "Cancel", the button of the page that was opened, or what a dialog had covered. Nor does a key held down.
if (!window.tmOnce) {
  window.tmOnce = true;
  const work = 'button.primary, button.secondary, .tm-link-button, button[data-act], button[data-again], button[data-measure]';
  const many = '.tm-pager button, .tm-many';  // what is meant to be clicked time and again
  const begins = (element) => element.closest?.(work) && !element.closest(many);
  let first = null;
  const stop = (event) => { event.preventDefault(); event.stopImmediatePropagation(); };
  document.addEventListener('click', (event) => {
    if (event.detail < 2) first = event.target;
    else if (begins(event.target) || first?.closest?.('dialog:not([open])')) stop(event);
  }, true);
  document.addEventListener('keydown', (event) => { if (event.repeat && event.key === 'Enter' && begins(event.target)) stop(event); }, true);
}
// The choice is kept in a cookie; what the address shows stays, but for a language that it named.
element.addEventListener('click', (event) => {
  const link = event.target.closest('a[data-language]');
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  document.cookie = `tailormt_language=${link.dataset.language}; Path=/; Max-Age=31536000; SameSite=Lax`;
  const address = new URL(window.location.href);
  address.searchParams.delete('lang');
  if (address.href === window.location.href) window.location.reload(); else window.location.assign(address);
});
