(choice) => {
  const address = new URL(window.location.href);
  if (choice) address.searchParams.set('plugin', choice); else address.searchParams.delete('plugin');
  window.history.replaceState(null, '', address);
}
