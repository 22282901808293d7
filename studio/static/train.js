(text) => { if (text) tmAddress(JSON.parse(text)); }
