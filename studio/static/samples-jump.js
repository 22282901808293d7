(address) => {
  if (!address) return;
  window.history.replaceState(null, '', address);
  document.getElementById('sentences')?.scrollIntoView({block: 'start', behavior: 'smooth'});
}
