(source, target) => {
  if (!source) return;
  const address = new URL(window.location.href);
  address.searchParams.set('source', source);
  address.searchParams.set('target', target);
  window.history.replaceState(null, '', address);
}
