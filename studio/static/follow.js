(address) => { if (address) window.location.assign(address); }
