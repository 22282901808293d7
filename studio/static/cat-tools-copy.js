() => { document.querySelector('.tm-cat [data-text]')?.click(); }
