element.addEventListener('click', (event) => {
  const link = event.target.closest('[data-act]');
  if (link) trigger('act', {act: link.dataset.act, job: link.dataset.job});
});
element.addEventListener('change', (event) => {
  if (event.target.matches('[data-sample]')) trigger('pick', {sample: event.target.value});
  if (!event.target.closest('[data-run]')) return;
  const picked = [...element.querySelectorAll('[data-run]:checked')].map((one) => one.dataset.run);
  trigger('pick', {runs: picked.join(',')});
});
