{
  // A box with data-edit is edited in place: a field and the alternatives of its text stand where the text was. The box says what
  // it translates (data-source); what is around it says by which plugin, at which strength, and of which document.
  let open = null, asked = 0, watched = false;
  const around = (box, name) => (box.closest(`[data-${name}]`) || {dataset: {}}).dataset[name] || '';
  const fresh = () => `${Date.now()}.${asked += 1}`;
  const make = (tag, kind, words) => Object.assign(document.createElement(tag), {className: kind, textContent: words || ''});
  const close = (text) => {
    const {box, form} = open;
    open = null;
    form.remove();
    box.hidden = false;
    if (text !== undefined && text !== box.textContent) {
      box.textContent = text;
      box.classList.add('tm-edited');
    }
    box.focus({preventScroll: true});
  };
  // The word at the cursor; what stands before it is kept by the alternatives.
  const word = (field) => {
    const cut = new Intl.Segmenter(field.lang || undefined, {granularity: 'word'});
    const at = field.selectionStart, none = {index: 0, segment: ''};
    return [...cut.segment(field.value)].findLast((part) => part.isWordLike && part.index <= at) || none;
  };
  const ask = () => {
    const {box, field, options} = open, {index, segment} = word(field);
    const prefix = field.value.slice(0, index), about = `${prefix}\n${segment}`;
    if (about === open.about) return;
    open.about = about;
    open.key = fresh();
    options.replaceChildren(make('p', 'tm-quiet', tmSay('Looking up …')));
    trigger('alternatives', {
      key: open.key, source: box.dataset.source, prefix, word: segment,
      plugin: around(box, 'plugin'), strength: around(box, 'strength') || 1,
    });
  };
  const fit = () => { open.field.style.height = 'auto'; open.field.style.height = `${open.field.scrollHeight + 2}px`; };
  const act = (learn) => {
    const {box, field} = open, translation = field.value.trim(), number = around(box, 'document');
    if (!translation) return;
    if (!learn && !number) { close(translation); return; }
    const again = open.sent && open.sent.translation === translation && open.sent.learn === learn;  // any answer to it will do
    open.sent = {key: again ? open.sent.key : fresh(), translation, learn};
    const pair = {key: open.sent.key, source: box.dataset.source, translation, replaces: box.dataset.learned || ''};
    if (number) trigger('save', {...pair, document: number, segment: box.dataset.edit, learn});
    else trigger('learn', pair);
  };
  const leave = () => {  // for another box: what was typed is kept
    const {box, field} = open, changed = field.value.trim() !== box.textContent;
    if (changed && around(box, 'document')) act(false);
    close(field.value.trim() || undefined);
  };
  const heed = () => {
    const answer = document.querySelector('.tm-reply [data-reply]');
    if (!open || !answer) return;
    if (open.sent && answer.dataset.reply === open.sent.key) {
      if (open.sent.learn) open.box.dataset.learned = open.sent.translation;
      close(open.sent.translation);
    } else if (answer.dataset.reply === open.key) open.options.replaceChildren(...answer.cloneNode(true).childNodes);
  };
  const edit = (box, text, at) => {
    if (open) leave();
    const form = make('div', 'tm-editor'), field = make('textarea', ''), row = make('div', 'tm-editor-row');
    const options = make('div', 'tm-editor-options');
    Object.assign(field, {value: text, rows: 1, maxLength: 20000, lang: around(box, 'language'), dir: 'auto'});
    field.setAttribute('aria-label', tmSay('Translation'));
    const say = (name, words, kind) => {
      const button = Object.assign(make('button', kind, words), {type: 'button'});
      button.dataset.do = name;
      row.append(button);
    };
    say('learn', tmSay('Add to samples'), 'tm-filled');
    if (around(box, 'keep')) say('keep', around(box, 'document') ? tmSay('Save') : tmSay('Done'), 'tm-text-button');
    say('cancel', tmSay('Cancel'), 'tm-text-button');
    form.append(field, row, options);
    open = {box, form, field, options, about: null, key: '', sent: null};
    box.after(form);
    box.hidden = true;
    fit();
    field.focus({preventScroll: true});
    field.setSelectionRange(at, at);
    if (!watched) new MutationObserver(heed).observe(document.querySelector('.tm-reply'), {childList: true, subtree: true});
    watched = true;
    ask();
  };
  const touched = (event) => {
    const opener = event.target.closest('[data-edit-open]');
    if (opener) return opener.closest('td').querySelector('[data-edit]');
    return event.target.closest('[data-edit][role="button"]');
  };
  element.addEventListener('click', (event) => {
    const box = touched(event);
    if (box) {
      const marked = window.getSelection();
      if (!marked.isCollapsed && box.contains(marked.anchorNode)) return;  // to be copied
      const range = document.caretRangeFromPoint && document.caretRangeFromPoint(event.clientX, event.clientY);
      edit(box, box.textContent, range && box.contains(range.startContainer) ? range.startOffset : 0);
      return;
    }
    if (!open || !open.form.contains(event.target)) return;
    const button = event.target.closest('button'), {field} = open;
    if (event.target === field) ask();
    else if (!button) return;
    else if (button.dataset.do === 'cancel') close();
    else if (button.dataset.do) act(button.dataset.do === 'learn');
    else if ('sentence' in button.dataset) { field.value = button.textContent; fit(); }
    else if (button.dataset.word) {
      const {index, segment} = word(field), end = index + button.dataset.word.length;
      field.setRangeText(button.dataset.word, index, index + segment.length);
      field.setSelectionRange(end + 1, end + 1);  // what follows is asked for next
      fit();
      ask();
    }
  });
  element.addEventListener('input', (event) => { if (open && event.target === open.field) fit(); });
  element.addEventListener('keydown', (event) => {
    if (open && open.form.contains(event.target)) {
      event.stopImmediatePropagation();
      if (event.key === 'Escape') close();
      if (event.key === 'Enter' && event.target === open.field) { event.preventDefault(); act(!around(open.box, 'keep')); }
      return;
    }
    if (event.key !== 'Enter' && event.key !== ' ') return;
    const box = event.target.matches('[data-edit][role="button"]') ? event.target : null;
    if (!box) return;
    event.preventDefault();
    edit(box, box.textContent, 0);
  });
  // What was typed outlives a view that is drawn anew.
  new MutationObserver(() => {
    if (!open || open.box.isConnected) return;
    const {box, field} = open;
    const again = [...element.querySelectorAll('[data-edit]')].find(
      (other) => other.dataset.edit === box.dataset.edit && other.dataset.source === box.dataset.source);
    open = null;
    if (again) edit(again, field.value, field.selectionStart);
  }).observe(element, {childList: true, subtree: true});
}
