element.addEventListener('click', (event) => {
  const button = event.target.closest('[data-look]');
  if (button) { button.disabled = true; trigger('look', {}); }
  const make = event.target.closest('[data-make]');
  if (make) { make.disabled = true; trigger('make', {}); }
});
