// Says that the studio does not answer, in a bar at the top, and loads the page again as soon as it does. There is one bar for the
// document, which stays while the pages in it change. Gradio's own word for this, which is English, is hidden by the style sheet.
if (!window.tmGone) {
  const ask = window.fetch.bind(window);
  const pause = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });
  const answers = () => ask('/healthz', {cache: 'no-store'}).then((answer) => answer.ok, () => false);
  let leaving = false;  // a page that is left breaks its requests off
  let asking = null;
  const say = async () => {
    const bar = document.createElement('div');
    bar.className = 'tm-connection';
    bar.setAttribute('role', 'alert');
    bar.textContent = tmSay('The studio is not responding. This page reloads automatically when it does.');
    document.documentElement.classList.add('tm-lost');
    document.body.append(bar);
    do await pause(2000); while (!await answers());
    window.location.reload();
  };
  const lost = async () => {
    if (await answers()) return false;
    await pause(1000);
    if (leaving || await answers()) return false;
    say();
    return true;
  };
  // Whether the studio does not answer; asked twice, since one request may fail by chance.
  window.tmGone = () => {
    asking ??= lost().then((gone) => { if (!gone) asking = null; return gone; });
    return asking;
  };
  window.fetch = async (...given) => {
    try {
      const answer = await ask(...given);
      if (answer.status >= 502 && answer.status <= 504) window.tmGone();  // a proxy answers in its place
      return answer;
    } catch (error) {
      if (error.name !== 'AbortError') window.tmGone();
      throw error;
    }
  };
  window.addEventListener('offline', () => window.tmGone());
  document.addEventListener('visibilitychange', () => { if (!document.hidden) window.tmGone(); });
  window.addEventListener('pagehide', () => { leaving = true; });
  window.addEventListener('pageshow', () => { leaving = false; });
  // A link would lead to the browser's own page about an address that does not answer.
  document.addEventListener('click', (event) => {
    if (!document.documentElement.classList.contains('tm-lost') || !event.target.closest?.('a[href]')) return;
    event.preventDefault();
    event.stopPropagation();
  }, true);
}
