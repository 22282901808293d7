(address) => { if (address) window.history.replaceState(null, '', address); }
