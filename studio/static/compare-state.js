element.addEventListener('click', (event) => {
  if (event.target.closest('[data-measure]')) trigger('act', {act: 'measure'});
  if (event.target.closest('[data-again]')) trigger('act', {act: 'again'});
  if (event.target.closest('[data-cancel]')) trigger('act', {act: 'cancel'});
});
