(project, plugin, strength, text) => {
  const address = new URL(window.location.href);
  if (project) address.searchParams.set('project', project);
  address.searchParams.set('plugin', plugin || 0);
  if (plugin && Number(strength) !== 1) address.searchParams.set('strength', strength);
  else address.searchParams.delete('strength');
  if (text && text.length <= 1200) address.searchParams.set('text', text);
  else address.searchParams.delete('text');
  window.history.replaceState(null, '', address);
}
