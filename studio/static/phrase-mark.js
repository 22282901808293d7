// The address follows what is looked at, and the map rings the chosen phrase.
const mark = () => {
  const here = element.querySelector('[data-address]');
  if (!here) return;
  window.history.replaceState(null, '', here.dataset.address);
  window.tmChosen = here.dataset.chosen;
  window.dispatchEvent(new CustomEvent('tm-chosen', {detail: here.dataset.chosen}));
};
watch('value', mark);
