// Events of the page CAT tools. The same script serves both of its views.
element.addEventListener('change', (event) => {
  if (event.target.matches('[data-choice]')) trigger('choose', {value: event.target.value});
});
element.addEventListener('click', (event) => {
  const link = event.target.closest('[data-tool]');  // an anchor would leave the page: it has a base address
  if (link) element.querySelector(`#${link.dataset.tool}`).scrollIntoView({behavior: 'smooth'});
});
