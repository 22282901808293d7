element.addEventListener('change', (event) => window.location.assign(event.target.value));
