const TEXTS = {
  en: {
    source: 'Source', undo: 'Undo', skip: 'Skip', keys: '1 for A, 2 for the same, 3 for B', a: 'A is better', same: 'Same', b: 'B is better',
    content: ['Content', 'Which one says what the source says?'], fluency: ['Fluency', 'Which one reads more naturally?'],
    style: ['Style', 'Which one is more in the wanted style?'], examples: 'Sentences in the wanted style',
    count: (done, total) => `${done} of ${total}`, thanks: 'Thank you, all is rated.', closed: 'This rating is closed. Thank you.',
    skipped: (n) => n === 1 ? 'You skipped one sentence.' : `You skipped ${n} sentences.`, again: 'Rate them now',
    offline: 'Not saved: the studio does not answer. Trying again.',
  },
  zh: {
    source: '原文', undo: '撤销', skip: '跳过', keys: '1：A 更好，2：一样，3：B 更好', a: 'A 更好', same: '一样', b: 'B 更好',
    content: ['内容', '哪一个更准确地表达了原文的意思？'], fluency: ['流畅', '哪一个读起来更通顺自然？'],
    style: ['风格', '哪一个更接近目标风格？'], examples: '目标风格的例句',
    count: (done, total) => `${done} / ${total}`, thanks: '全部评完了，谢谢。', closed: '本次评分已结束，谢谢。',
    skipped: (n) => `您跳过了 ${n} 句。`, again: '现在评这些句子',
    offline: '尚未保存：没有收到应答，正在重试。',
  },
};
const about = JSON.parse(document.getElementById('about').textContent);
const chosen = (document.cookie.match(/(?:^|; )tailormt_language=(\w+)/) || [])[1];
const wanted = new URLSearchParams(location.search).get('lang') || chosen || navigator.language;
const language = wanted.toLowerCase().startsWith('zh') ? 'zh' : 'en';
const say = TEXTS[language];
const by = (id) => document.getElementById(id);
const QUESTIONS = ['content', 'fluency', 'style'];
const SIDES = ['a', 'same', 'b'];
let state = null;
let work = Promise.resolve();

document.documentElement.lang = language === 'zh' ? 'zh-CN' : 'en';
for (const place of document.querySelectorAll('[data-say]')) place.textContent = say[place.dataset.say];
by('source').lang = about.source;
by('a').lang = by('b').lang = about.target;
for (const question of QUESTIONS) {
  const group = document.createElement('fieldset');
  group.id = question;
  const legend = document.createElement('legend');
  const more = document.createElement('small');
  legend.textContent = say[question][0];
  more.textContent = say[question][1];
  legend.append(more);
  const choices = document.createElement('div');
  choices.className = 'choices';
  SIDES.forEach((side, place) => {
    const button = document.createElement('button');
    const key = document.createElement('kbd');
    button.type = 'button';
    button.dataset.side = side;
    button.append(say[side]);
    key.textContent = place + 1;
    key.setAttribute('aria-hidden', 'true');
    button.append(key);
    button.addEventListener('click', () => act(() => ['answer', {item: state.item, question, side}]));
    choices.append(button);
  });
  group.append(legend, choices);
  by('questions').append(group);
}
for (const text of about.examples || []) {
  const line = document.createElement('li');
  line.textContent = text;
  line.lang = about.target;
  line.dir = 'auto';
  by('examples').querySelector('ul').append(line);
  by('examples').hidden = false;
}

function current() {
  return QUESTIONS.find((question) => !(question in state.answers));
}

function show() {
  by('page').hidden = false;
  const share = state.total ? 100 * state.done / state.total : 100;
  document.querySelector('.bar i').style.width = `${share}%`;
  document.querySelector('.bar').setAttribute('aria-valuenow', Math.round(share));
  document.querySelector('.bar').setAttribute('aria-label', say.count(state.done, state.total));
  by('count').textContent = say.count(state.done, state.total);
  by('asked').hidden = state.item === null;
  by('over').hidden = state.item !== null;
  if (state.item === null) {
    by('thanks').textContent = state.closed ? say.closed : say.thanks;
    by('left').textContent = state.skipped && !state.closed ? say.skipped(state.skipped) : '';
    by('again').hidden = !state.skipped || state.closed;
    by('back').hidden = state.closed || !state.done;
    return;
  }
  for (const place of ['source', 'a', 'b']) by(place).textContent = state[place];
  by('undo').disabled = !state.done && !Object.keys(state.answers).length;
  for (const question of QUESTIONS) {
    const group = by(question);
    group.classList.toggle('now', question === current());
    for (const button of group.querySelectorAll('button'))
      button.setAttribute('aria-pressed', String(state.answers[question] === button.dataset.side));
  }
}

// One thing after the other, in the order of the keys, each decided on what was shown when its turn came.
function act(what) {
  work = work.then(async () => {
    const asked = what();
    if (asked) await send(...asked);
  });
}

async function send(path, body) {
  for (let wait = 500; ; wait = Math.min(2 * wait, 8000)) {
    try {
      const answer = await fetch(`${location.pathname}/${path}`, {
        method: body ? 'POST' : 'GET', headers: body ? {'Content-Type': 'application/json'} : {}, body: body && JSON.stringify(body),
      });
      const reply = await answer.json();
      if (answer.ok) {
        by('fail').hidden = true;
        state = reply;
        show();
        return;
      }
      if (answer.status < 500) {
        by('fail').hidden = false;
        by('page').hidden = false;
        by('fail').textContent = reply.error;
        if (body) await send('state');
        return;
      }
    } catch (error) { /* the studio is away for a moment: what was chosen is sent when it is back */ }
    by('fail').hidden = by('page').hidden = false;
    by('fail').textContent = say.offline;
    await new Promise((done) => setTimeout(done, wait));
  }
}

const undo = () => act(() => state.closed ? null : ['undo', {}]);
const skip = () => act(() => state.item === null ? null : ['skip', {item: state.item}]);
by('undo').addEventListener('click', undo);
by('back').addEventListener('click', undo);
by('skip').addEventListener('click', skip);
by('again').addEventListener('click', () => act(() => ['again', {}]));
document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || state === null) return;
  const place = ['1', '2', '3'].indexOf(event.key);
  if (place >= 0) act(() => state.item === null ? null : ['answer', {item: state.item, question: current(), side: SIDES[place]}]);
  else if (event.key.toLowerCase() === 'u' || event.key === 'Backspace') undo();
  else if (event.key.toLowerCase() === 's') skip();
  else return;
  event.preventDefault();
});
act(() => ['state']);
