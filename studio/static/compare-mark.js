(here, project) => {
  if (!here || !project) return;
  const {comparison, order, offset, word} = JSON.parse(here);
  if (!comparison && !new URL(window.location.href).searchParams.has('comparison')) return;
  tmAddress({project, comparison: comparison || 'new', plugin: '', order: order === 'place' ? '' : order, offset, word});
}
