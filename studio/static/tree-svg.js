// One stop of the tab key for the whole tree; arrows go from node to node, Enter chooses. Clicks choose too.
const centre = () => {
  const frame = element.querySelector('.tm-tree'), mark = element.querySelector('.tm-under-phrase');
  if (!frame || !mark) return;
  const at = mark.getBoundingClientRect(), seen = frame.getBoundingClientRect();
  frame.scrollLeft += at.left + at.width / 2 - seen.left - seen.width / 2;
};
watch('value', centre);
document.documentElement.classList.toggle('tm-labels', localStorage.tailormt_labels === '1');
const nodes = () => [...element.querySelectorAll('[data-node]')];
const go = (node) => {
  if (!node) return;
  nodes().forEach((one) => one.setAttribute('tabindex', one === node ? '0' : '-1'));
  node.focus({preventScroll: false});
};
const near = (name, node) => element.querySelector(`[data-node="${node.dataset[name]}"]`);
const choose = (event) => {
  const node = event.target.closest('[data-node]');
  const at = node?.closest('[data-sentence]').dataset.sentence;
  if (node?.dataset.key) trigger('pick', {phrase: node.dataset.key, sentence: at});
  if (event.target.closest('[data-labels]')) {
    localStorage.tailormt_labels = document.documentElement.classList.toggle('tm-labels') ? '1' : '';
  }
  const step = event.target.closest('[data-step]');
  if (step) trigger('step', {sentence: step.dataset.step});
};
element.addEventListener('click', choose);
element.addEventListener('keydown', (event) => {
  const node = event.target.closest('[data-node]');
  if (!node) return;
  const all = nodes(), place = all.indexOf(node);
  const ways = {ArrowUp: () => near('up', node), ArrowDown: () => near('down', node), ArrowRight: () => all[place + 1],
    ArrowLeft: () => all[place - 1], Home: () => all[0], End: () => all[all.length - 1]};
  if (ways[event.key]) { event.preventDefault(); go(ways[event.key]()); }
  if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); choose(event); }
});
