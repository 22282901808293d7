(text) => {
  if (!text) return;
  const address = new URL(window.location.href);
  for (const [key, value] of Object.entries(JSON.parse(text))) {
    if (value) address.searchParams.set(key, value); else address.searchParams.delete(key);
  }
  window.history.replaceState(null, '', address);
}
