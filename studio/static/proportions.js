watch('value', () => {
  const here = element.querySelector('[data-query]');
  if (here) tmAddress(Object.fromEntries(new URLSearchParams(here.dataset.query)));
});
