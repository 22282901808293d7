// Words become elements of their own only in the cell that is pointed at or focused: a page has thousands of them.
const size = (text) => [...text].length;
const wrap = (box) => {
  if (box.dataset.wrapped) return;
  box.dataset.wrapped = 'yes';
  const code = box.closest('[lang]') ? box.closest('[lang]').lang : undefined;
  const cut = window.Intl && Intl.Segmenter ? new Intl.Segmenter(code, {granularity: 'word'}) : null;
  const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT), nodes = [];
  while (walker.nextNode()) nodes.push(walker.currentNode);
  let at = 0;
  for (const node of nodes) {
    const parts = cut ? [...cut.segment(node.data)].map((part) => part.segment) : node.data.split(/(\s+)/);
    const fresh = document.createDocumentFragment();
    for (const part of parts) {
      const end = at + size(part);
      if (part.trim()) {
        const word = document.createElement('span');
        word.className = 'w';
        word.dataset.start = at;
        word.dataset.end = end;
        word.textContent = part;
        fresh.append(word);
      } else fresh.append(part);
      at = end;
    }
    node.replaceWith(fresh);
  }
};
const choose = (word) => {
  const box = word.closest('.tm-words');
  element.querySelectorAll('.w.chosen').forEach((word) => word.classList.remove('chosen'));
  word.classList.add('chosen');
  const at = word.getBoundingClientRect();  // on a narrow page the panel covers the lower part
  if (window.innerWidth <= 1100 && at.bottom > 0.5 * window.innerHeight)
    window.scrollBy({top: at.top - 0.3 * window.innerHeight, behavior: 'smooth'});
  trigger('word', {
    line: Number(box.dataset.line), system: Number(box.dataset.system),
    start: Number(word.dataset.start), end: Number(word.dataset.end), word: word.textContent,
  });
};
// The word that is open stays marked, and a dial that was turned keeps the focus, when the table is drawn anew.
const mark = () => {
  const card = element.querySelector('[data-word]');
  const parts = card && card.dataset.word ? card.dataset.word.split(/[.-]/) : [];
  const box = parts.length === 4
    ? element.querySelector(`.tm-words[data-line="${Number(parts[0])}"][data-system="${Number(parts[1])}"]`) : null;
  if (!box) return;
  wrap(box);
  for (const word of box.querySelectorAll('.w'))
    if (Number(word.dataset.start) < Number(parts[3]) && Number(word.dataset.end) > Number(parts[2]))
      word.classList.add('chosen');
};
let held = '';
new MutationObserver((changes) => {
  if (![...changes].some((change) => [...change.addedNodes].some((node) => node.querySelector && node.querySelector('table'))))
    return;
  mark();
  if (held && (!document.activeElement || document.activeElement === document.body)) {
    const again = element.querySelector(held);
    if (again) again.focus({preventScroll: true});
  }
}).observe(element, {childList: true, subtree: true});
element.addEventListener('focusin', (event) => {
  const box = event.target;
  held = box.id ? '#' + box.id : box.matches('[data-order]') ? '[data-order]' : '';
});
const near = (event) => event.target.closest && event.target.closest('.tm-words');
element.addEventListener('pointerover', (event) => { const box = near(event); if (box) wrap(box); });
element.addEventListener('focusin', (event) => { const box = near(event); if (box) wrap(box); });
element.addEventListener('click', (event) => {
  const box = near(event);
  if (box) {
    wrap(box);
    const word = document.elementFromPoint(event.clientX, event.clientY);
    if (word && word.classList.contains('w')) choose(word);
    return;
  }
  const leaf = event.target.closest('[data-offset]');
  if (leaf) trigger('leaf', {order: tmParameter('order'), offset: Number(leaf.dataset.offset)});
});
element.addEventListener('keydown', (event) => {
  const box = near(event);
  if (!box) return;
  wrap(box);
  const words = [...box.querySelectorAll('.w')];
  if (!words.length) return;
  const now = words.findIndex((word) => word.classList.contains('here'));
  const back = getComputedStyle(box).direction === 'rtl' ? 'ArrowRight' : 'ArrowLeft';
  let next = null;
  if (event.key === 'ArrowRight' || event.key === 'ArrowLeft') next = now + (event.key === back ? -1 : 1);
  else if (event.key === 'Home') next = 0;
  else if (event.key === 'End') next = words.length - 1;
  else if (event.key === 'Enter' || event.key === ' ') {
    event.preventDefault();
    choose(words[Math.max(0, now)]);
    return;
  } else if (event.key === 'Escape') {
    const close = document.querySelector('.tm-reading [data-close]');
    if (close) close.click();
    return;
  } else return;
  event.preventDefault();
  words.forEach((word) => word.classList.remove('here'));
  words[Math.min(words.length - 1, Math.max(0, next))].classList.add('here');
});
element.addEventListener('focusout', (event) => {
  const box = near(event);
  if (box) box.querySelectorAll('.w.here').forEach((word) => word.classList.remove('here'));
});
element.addEventListener('input', (event) => {
  if (event.target.type === 'range') event.target.nextElementSibling.textContent = Number(event.target.value);
});
let turned = '';
element.addEventListener('change', (event) => {
  if (event.target.type === 'range') {
    const card = event.target.closest('[data-comparison]');
    const setting = [card.dataset.comparison, event.target.dataset.system, event.target.value].join();
    if (setting === turned) return;  // a shared comparison would be copied twice
    turned = setting;
    trigger('dial', {system: Number(event.target.dataset.system), strength: Number(event.target.value)});
  }
  if (event.target.matches('[data-order]')) {
    const order = event.target.value;
    tmAddress({order, offset: ''});  // the next page is asked for in this order, whatever is drawn by then
    trigger('leaf', {order, offset: 0});
  }
});
