(number, project) => {
  if (!number) return;
  const address = new URL(window.location.href);
  address.search = '';
  address.searchParams.set('project', project);
  address.searchParams.set('round', number);
  window.history.replaceState(null, '', address);
}
