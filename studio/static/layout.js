// What a page shows stands in its address, without a reload; an empty value is left out of it.
window.tmAddress = (values) => {
  const address = new URL(window.location.href);
  for (const [name, value] of Object.entries(values)) {
    if (value) address.searchParams.set(name, value); else address.searchParams.delete(name);
  }
  window.history.replaceState(null, '', address);
};
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
