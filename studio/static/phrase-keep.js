element.addEventListener('click', (event) => {
  const button = event.target.closest('button');
  if (button?.dataset.keep) trigger('keep', {phrase: button.dataset.keep, keep: button.dataset.on === 'true'});
  if (button?.dataset.back) trigger('back', {phrase: button.dataset.back});
});
