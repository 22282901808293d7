element.addEventListener('click', (event) => {
  const leaf = event.target.closest('[data-offset]'), card = element.querySelector('[data-document]');
  if (leaf) trigger('leaf', {job: card.dataset.document, offset: leaf.dataset.offset});
  if (event.target.closest('[data-close]')) trigger('leaf', {job: 0, offset: 0});
});
// The document that is previewed stands in the address; a new one, or another page of it, comes into sight.
let shown = null;
new MutationObserver(() => {
  const card = element.querySelector('[data-document]'), number = card ? card.dataset.document : '';
  if (card === shown) return;
  if (card && (shown || !new URL(window.location.href).searchParams.has('document'))) card.scrollIntoView({behavior: 'smooth'});
  shown = card;
  tmAddress({document: number});
}).observe(element, {childList: true, subtree: true});
