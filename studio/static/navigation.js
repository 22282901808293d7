// Going from page to page within the document: what Gradio has loaded stays loaded, so that a step is there at once.
//
// Every page is a document of its own with an address of its own, and opens as that by a reload, a bookmark or a link sent to
// somebody. A click on a step fetches that document too, but takes from it only what the page is made of, and gives that to
// the running Gradio, which takes the old page down and puts the new one up. Loading and starting Gradio again takes most of a
// second; this takes a fifth of that. Where anything is not as expected, or Gradio does not come up again (an answer to the old
// page may reach it as it starts), the address is simply opened.
if (!window.tmGo) {
  let asked = 0;
  const coming = new Map();  // what is asked for as soon as a link is pointed at
  window.tmFetch = (place) => {
    if (!coming.has(place)) {
      coming.set(place, fetch(place, {headers: {Accept: 'text/html'}}));
      setTimeout(() => coming.delete(place), 5000);
    }
    return coming.get(place).then((answer) => answer.clone());
  };
  window.tmGo = async (place, forward) => {
    const mine = ++asked;
    try {
      const answer = await window.tmFetch(place);
      const match = (await answer.text()).match(/window\.gradio_config = (\{.*?\});<\/script>/s);
      const config = JSON.parse(match[1]);
      const app = document.querySelector('body > gradio-app');
      if (mine !== asked) return;  // another step was clicked in the meantime
      if (!answer.ok || !app || answer.redirected) throw new Error('not a page');
      if (forward) history.pushState({tm: true}, '', place);
      window.gradio_config = config;
      const next = app.nextSibling;
      app.remove();
      document.body.insertBefore(app, next);
      window.scrollTo(0, 0);
      const begin = Date.now();
      const watch = setInterval(() => {
        const over = mine !== asked || document.querySelector('.tm-main');
        if (!over && Date.now() - begin < 4000) return;
        clearInterval(watch);
        if (!over) window.location.assign(place);
      }, 200);
    } catch (error) {
      if (mine === asked && !await window.tmGone?.()) window.location.assign(place);
    }
  };
  window.addEventListener('popstate', () => { if (!location.hash) window.tmGo(location.href, false); });
}
element.addEventListener('pointerover', (event) => {
  const link = event.target.closest('a[href]');
  if (link) window.tmFetch(link.href).catch(() => {});
});
element.addEventListener('click', (event) => {
  const link = event.target.closest('a[href]');
  if (!link || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  window.tmGo(link.href, true);
});
