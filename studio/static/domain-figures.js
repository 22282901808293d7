// Words are buttons, examples too; `more` of a page's own.
element.addEventListener('click', (event) => {
  const word = event.target.closest('[data-word]');
  if (word) trigger('word', {word: word.dataset.word, language: word.dataset.side});
  const example = event.target.closest('[data-example]');
  if (example) trigger('example', {number: example.dataset.example});
});
