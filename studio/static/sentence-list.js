// Links carry the address of what they show, so they also work by themselves; here they only spare the reload.
const root = () => element.querySelector('[data-query]');
const go = (changes) => {
  const query = new URLSearchParams(root().dataset.query);
  query.delete('at');
  for (const [name, value] of Object.entries(changes)) value ? query.set(name, value) : query.delete(name);
  trigger('go', {to: query.toString()});
};
element.addEventListener('click', (event) => {
  const link = event.target.closest('a[data-go]');
  if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    trigger('go', {to: link.dataset.go});
  }
  const button = event.target.closest('button[data-decide]');
  if (button) {
    const {query} = root().dataset, {decide, key = '', of = query} = button.dataset;
    trigger('decide', {action: decide, key, of, query});
  }
  if (event.target.closest('button[data-undo]')) trigger('undo', {});
  if (event.target.closest('button[data-again]')) trigger('again', {});
});
element.addEventListener('change', (event) => {
  if (event.target.matches('[data-filter]')) go({[event.target.dataset.filter]: event.target.value});
});
element.addEventListener('search', (event) => {
  if (event.target.matches('[data-filter]') && !event.target.value) go({words: ''});
}, true);
