(here, project) => {
  if (!here || !project) return;
  const now = JSON.parse(here), address = new URL(window.location.href);
  if (!now.comparison && !address.searchParams.has('comparison')) return;
  for (const name of ['plugin', 'order', 'offset', 'word']) address.searchParams.delete(name);
  address.searchParams.set('project', project);
  address.searchParams.set('comparison', now.comparison || 'new');
  if (now.order && now.order !== 'place') address.searchParams.set('order', now.order);
  if (now.offset) address.searchParams.set('offset', now.offset);
  if (now.word) address.searchParams.set('word', now.word);
  window.history.replaceState(null, '', address);
}
