// Draws the studio's plotly figures from data that stand in the page or are fetched from this server; nothing comes from
// elsewhere. A figure is <div class="tm-fig" data-kind="…" data-figure="{…}"> or data-src="…". Controls in the same
// .tm-plots, <input type="range" data-layers>, step through the layers without asking the server again.
(() => {
  if (window.tmFigures) return;
  let loading = null;
  const plotly = () => {
    if (window.Plotly && window.Plotly.newPlot) return Promise.resolve(window.Plotly);
    loading ??= new Promise((resolve, reject) => {
      const script = document.createElement('script');
      script.src = '/tm/plotly.min.js';
      script.onload = () => resolve(window.Plotly);
      script.onerror = () => { loading = null; reject(new Error('plotly.js could not be loaded')); };
      document.head.append(script);
    });
    return loading;
  };
  const css = (name) => getComputedStyle(document.body).getPropertyValue(`--tm-${name}`).trim();
  const percent = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)}\u00a0%`;
  const QUARTERS = {tickvals: [0, 0.25, 0.5, 0.75, 1], ticktext: ['0\u00a0%', '25\u00a0%', '50\u00a0%', '75\u00a0%', '100\u00a0%']};
  const escape = (text) => String(text).replace(/[&<>]/g, (character) => ({'&': '&amp;', '<': '&lt;', '>': '&gt;'})[character]);

  const layout = (more) => {
    const ink = css('ink-2'), line = css('line');
    const axis = {gridcolor: line, zerolinecolor: line, linecolor: line, tickfont: {color: ink}, automargin: true};
    return {
      paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', margin: {l: 40, r: 8, t: 6, b: 30},
      font: {family: getComputedStyle(document.body).fontFamily, size: 12, color: ink}, showlegend: false,
      hoverlabel: {bgcolor: css('card'), bordercolor: line, font: {color: css('ink'), size: 13}},
      ...more, xaxis: {...axis, ...more.xaxis}, yaxis: {...axis, ...more.yaxis},
    };
  };
  const config = {displayModeBar: false, responsive: true, scrollZoom: false};

  // -- the kinds: each gives traces and a layout for a layer

  const words = (data, layer) => ({
    traces: data.domains.map((name, j) => ({
      type: 'bar', name, marker: {color: data.colours[j], line: {width: 0}},
      x: data.words.map((_, i) => i), y: data.shares[layer].map((row) => row[j]), customdata: data.words,
      text: data.words.map((word, i) => `<b>${escape(word)}</b><br>${data.domains.map((domain, k) => `${escape(domain)} ${percent(data.shares[layer][i][k])}`).join('<br>')}`),
      textposition: 'none', hovertemplate: '%{text}<extra></extra>',
    })),
    layout: layout({
      barmode: 'stack', bargap: 0.22, height: 250, margin: {l: 44, r: 8, t: 12, b: 34},
      xaxis: {tickvals: data.words.map((_, i) => i), ticktext: data.words.map((word) => escape(word)), showgrid: false,
        tickfont: {size: data.wide ? 14 : 13, color: css('ink')}, tickangle: data.words.length > 22 ? -45 : 0, fixedrange: true},
      yaxis: {range: [0, 1], ...QUARTERS, fixedrange: true},
    }),
    width: Math.max(0, data.words.length * (data.wide ? 40 : 54) + 60),
  });

  const corpus = (data, layer) => ({
    traces: data.domains.map((name, j) => ({
      type: 'bar', orientation: 'h', name, marker: {color: data.colours[j], line: {width: 0}},
      y: data.rows.map(escape), x: data.shares[layer].map((row) => row[j]), customdata: data.shares[layer].map((row) => percent(row[j])),
      hovertemplate: tmSay('words of {domain}: {share} {name}', {domain: '%{y}', share: '%{customdata}', name: escape(name)}) + '<extra></extra>',
    })),
    layout: layout({
      barmode: 'stack', bargap: 0.3, height: 54 + 40 * data.rows.length, margin: {l: 8, r: 22, t: 4, b: 26},
      xaxis: {range: [0, 1], ...QUARTERS, fixedrange: true},
      yaxis: {autorange: 'reversed', showgrid: false, tickfont: {color: css('ink'), size: 13}, fixedrange: true},
    }),
  });

  const histogram = (data, layer) => ({
    traces: data.domains.map((name, j) => ({
      type: 'bar', name, marker: {color: data.colours[j], line: {width: 0}},
      x: data.bins.map((_, i) => i), y: data.counts[layer][j], customdata: data.bins,
      hovertemplate: tmSay('{count} words are {share} {name}', {count: '%{y:,}', share: '%{customdata}', name: escape(name)}) + '<extra></extra>',
    })),
    layout: layout({
      barmode: 'group', bargap: 0.18, bargroupgap: 0.04, height: 190, margin: {l: 44, r: 22, t: 6, b: 30},
      // The bounds of the columns: a name under each would be turned over or cut where the page is narrow.
      xaxis: {...QUARTERS, tickvals: QUARTERS.tickvals.map((share) => share * data.bins.length - 0.5),
        range: [-0.5, data.bins.length - 0.5], showgrid: false, zeroline: false, fixedrange: true}, yaxis: {fixedrange: true, rangemode: 'tozero', tickformat: ',d'},
    }),
  });

  const map = (data, colour) => {
    const groups = colour === 'domain' && data.domains.length > 1 ? data.domains : data.layer_colours.map((_, i) => tmSay('layer {number}', {number: i + 1}));
    const of = colour === 'domain' && data.domains.length > 1 ? data.domain : data.layer;
    const colours = colour === 'domain' && data.domains.length > 1 ? data.domains.map((name) => data.domain_colours[name] || css('ink-2')) : data.layer_colours;
    const traces = groups.map((name, j) => ({
      type: 'scattergl', mode: 'markers', name, x: [], y: [], text: [],
      marker: {color: colours[j], size: data.x.length > 5000 ? 4 : 6, opacity: 0.9, line: {width: 0.5, color: css('ink-2')}},
      hovertemplate: `%{text}<extra>${escape(name)}</extra>`,
    }));
    data.x.forEach((x, i) => { const trace = traces[of[i]]; trace.x.push(x); trace.y.push(data.y[i]); trace.text.push(escape(data.text[i])); });
    traces.push({type: 'scatter', mode: 'markers+text', name: '', x: [], y: [], text: [], textposition: 'top center', hoverinfo: 'skip', showlegend: false,
      textfont: {color: css('ink'), size: 14}, marker: {size: 14, color: 'rgba(0,0,0,0)', line: {color: css('ink'), width: 2}}});
    const empty = {showticklabels: false, zeroline: false, showgrid: false, ticks: ''};
    return {traces, layout: layout({height: 380, dragmode: 'pan', hovermode: 'closest', showlegend: true,
      legend: {orientation: 'h', x: 0, y: -0.04, itemsizing: 'constant', font: {size: 12}}, margin: {l: 8, r: 8, t: 6, b: 8},
      xaxis: empty, yaxis: empty}), config: {...config, scrollZoom: true}};
  };
  const kinds = {words, corpus, histogram, map};

  // -- drawing

  const state = new WeakMap();  // figure -> {data, kind, trigger, chosen}
  const layerOf = (figure) => {
    const control = figure.closest('.tm-plots')?.querySelector('[data-layers]');
    return control ? Number(control.value) : 0;
  };
  const colourOf = (figure) => figure.closest('.tm-plots')?.querySelector('[data-colour]:checked')?.value || 'layer';

  async function render(figure) {
    const known = state.get(figure);
    if (!known || !known.data) return;
    const Plotly = await plotly();
    if (!figure.isConnected) return;
    const made = kinds[known.kind](known.data, known.kind === 'map' ? colourOf(figure) : layerOf(figure));
    if (made.width) figure.style.minWidth = `${made.width}px`;
    await Plotly.react(figure, made.traces, made.layout, made.config || config);
    if (!known.bound) {
      known.bound = true;
      figure.on('plotly_click', (event) => {
        const point = event.points[0];
        if (known.kind === 'words') known.trigger('word', {word: point.customdata, language: known.data.language});
        if (known.kind === 'map' && point.text) known.trigger('pick', {phrase: known.data.text[known.index.get(point.x + ' ' + point.y)] ?? point.text});
      });
    }
    if (known.kind === 'map') ring(figure);
  }

  function ring(figure) {
    const known = state.get(figure);
    if (!known?.bound || !window.Plotly) return;
    const at = known.chosen ? known.data.text.indexOf(known.chosen) : -1;
    const last = figure.data.length - 1;
    window.Plotly.restyle(figure, at < 0 ? {x: [[]], y: [[]], text: [[]]}
      : {x: [[known.data.x[at]]], y: [[known.data.y[at]]], text: [[escape(known.data.text[at])]]}, [last]);
  }

  const frame = () => new Promise((go) => { if (document.hidden) setTimeout(go); else requestAnimationFrame(() => setTimeout(go)); });
  const painted = async () => { await frame(); await frame(); };

  async function draw(element, trigger) {
    element.querySelectorAll('[data-layers][data-name]').forEach((control) => {
      const given = tmParameter(control.dataset.name);
      if (given) { control.value = given; say(control); }
    });
    for (const figure of element.querySelectorAll('.tm-fig')) {
      if (state.has(figure)) continue;
      const known = {kind: figure.dataset.kind, trigger, chosen: window.tmChosen || '', data: null};
      state.set(figure, known);
      try {
        known.data = JSON.parse(figure.dataset.figure || '{}');
        if (figure.dataset.src) Object.assign(known.data, await (await fetch(figure.dataset.src)).json());
        if (known.kind === 'map') tell(figure, known.data);
        if (known.kind === 'map') known.index = new Map(known.data.x.map((x, i) => [x + ' ' + known.data.y[i], i]));
        await painted();  // a page with several figures is there, and can be used, before they are drawn
        await render(figure);
      } catch (error) {
        figure.textContent = tmSay('This figure could not be drawn. Reload the page.');
        console.warn(error);
      }
    }
  }

  function tell(figure, data) {
    const whole = figure.closest('.tm-plots');
    whole.querySelector('.tm-colour').hidden = data.domains.length < 2;
    whole.querySelector('.tm-map-about').textContent = tmSay('{count} phrases. {about} The plane shows {share} of the variance. Click a point to choose its phrase; drag to move, scroll to zoom.', {count: data.x.length.toLocaleString('en'), about: tmSay(data.about), share: percent(data.explained[0] + data.explained[1])});
  }
  function say(control) {
    const output = control.parentElement.querySelector('output');
    const name = JSON.parse(control.dataset.names)[Number(control.value)];
    if (output) output.textContent = name;
    control.setAttribute('aria-valuetext', name);
  }
  function remember(control) {
    if (control.dataset.name) tmAddress({[control.dataset.name]: control.value === '0' ? '' : control.value});
  }

  window.tmFigures = {
    // In a gr.HTML's script: tmFigures.mount(element, trigger, watch)
    mount(element, trigger, watch) {
      element.addEventListener('input', (event) => {
        const control = event.target.closest('[data-layers]');
        if (control) {
          say(control);
          control.closest('.tm-plots').querySelectorAll('.tm-fig').forEach(render);
        }
      });
      element.addEventListener('change', (event) => {
        const control = event.target.closest('[data-layers]');
        if (control) remember(control);
        if (event.target.closest('[data-colour]')) event.target.closest('.tm-plots').querySelectorAll('.tm-fig').forEach(render);
      });
      window.addEventListener('tm-chosen', (event) => element.querySelectorAll('.tm-fig[data-kind="map"]').forEach((figure) => {
        const known = state.get(figure);
        if (known) { known.chosen = event.detail; ring(figure); }
      }));
      new MutationObserver(() => element.querySelectorAll('.tm-fig').forEach(render)).observe(document.body, {attributes: true, attributeFilter: ['class']});
      watch('value', () => draw(element, trigger));
      draw(element, trigger);
    },
  };
})();
