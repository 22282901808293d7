const mark = () => {
  const here = element.querySelector('[data-query]');
  if (!here) return;
  const address = new URL(window.location.href);
  new URLSearchParams(here.dataset.query).forEach((value, name) => {
    if (value) address.searchParams.set(name, value); else address.searchParams.delete(name);
  });
  window.history.replaceState(null, '', address);
};
watch('value', mark);
