element.addEventListener('click', (event) => {
  const link = event.target.closest('[data-act]');
  if (link) trigger('act', {act: link.dataset.act, job: link.dataset.job});
});
// What is chosen stands in the address, where a reload or a shared link finds it, before the server has drawn it: answers may
// come in another order than the clicks.
element.addEventListener('change', (event) => {
  const {run} = event.target.dataset;
  if (event.target.matches('[data-sample]')) tmAddress({sample: event.target.value});
  else if (run) {
    const runs = new Set(tmParameter('runs').split(',').filter((run) => element.querySelector(`[data-run="${CSS.escape(run)}"]`)));
    if (event.target.checked) runs.add(run); else runs.delete(run);
    tmAddress({runs: [...runs].join(',')});
  } else return;
  trigger('pick');
});
