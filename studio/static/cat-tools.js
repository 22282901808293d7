// Events of the page CAT tools. The same script serves both of its views.
element.addEventListener('change', (event) => {
  if (event.target.matches('[data-choice]')) trigger('choose', {value: event.target.value});
});
element.addEventListener('click', (event) => {
  const create = event.target.closest('[data-create]');
  if (create) {
    create.disabled = true;  // a second click would make a second one
    setTimeout(() => { create.disabled = false; }, 3000);
    trigger('create');
  }
  const link = event.target.closest('[data-tool]');  // an anchor would leave the page: it has a base address
  if (link) element.querySelector(`#${link.dataset.tool}`).scrollIntoView({behavior: 'smooth'});
});
