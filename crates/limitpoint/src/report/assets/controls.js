// What a reader can change: the theme, the axes, seeds, settings, and which groups are shown.

// ---- theme ----

function prepareTheme() {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const button = document.getElementById('theme');
  const show = () => {
    root.dataset.shown = root.dataset.theme ?? (dark.matches ? 'dark' : 'light');
    button.textContent = root.dataset.shown === 'dark' ? '☀ Light' : '☾ Dark';
    readPalette();
  };
  button.addEventListener('click', () => {
    const wanted = root.dataset.shown === 'dark' ? 'light' : 'dark';
    const own = wanted === (dark.matches ? 'dark' : 'light');
    // back at what the system says, the page follows the system again
    if (own) delete root.dataset.theme;
    else root.dataset.theme = wanted;
    try {
      if (own) localStorage.removeItem('limitpoint-theme');
      else localStorage.setItem('limitpoint-theme', wanted);
    } catch { /* no storage, no memory */ }
    show();
    refresh();
  });
  dark.addEventListener('change', () => { show(); refresh(); });
  show();
}

// ---- controls ----

/** Radio buttons that look like one row; `options` are [value, text] pairs. */
function segments(legend, name, options, value, choose) {
  const labels = options.map(([key, text]) => make('label', {},
    make('input', { type: 'radio', name, value: key, checked: key === value, onchange: () => choose(key) }),
    make('span', {}, text)));
  return make('fieldset', { class: 'segments' }, make('legend', {}, legend), make('div', { class: 'options' }, ...labels));
}

/** A labelled select; `options` are [value, text] pairs. */
function picker(legend, id, options, choose) {
  const entries = options.map(([key, text]) => make('option', { value: key }, text));
  const select = make('select', { id, onchange: () => choose(select.value) }, ...entries);
  return make('label', { class: 'field' }, make('span', {}, legend), select);
}

function addControls() {
  const formulaOf = (key) => data.groups.find((_, index) => keyOf(index) === key)?.formula ?? '';
  const chips = keys().map((key) => make('button', {
    type: 'button', class: 'chip', 'aria-pressed': 'true', 'data-key': key,
    title: `${formulaOf(key) ? `${formulaOf(key)}\n` : ''}Click: show or hide. Double click: show this one alone.`,
    onclick: () => { toggle(key); },
    ondblclick: () => { only(key); },
  }, make('span', { class: 'swatch', 'data-key': key }), labelOfKey(key)));
  const views = [['band', 'band'], ['mean', 'mean'], ...(data.singles ? [['each', 'each run']] : [])];
  const seeds = data.groups.some((group) => group.seeds > 1)
    ? [segments('Seeds', 'seeds', views, state.seeds, (value) => { state.seeds = value; refresh(plots.filter((plot) => plot.curves)); })]
    : [];
  const left = data.all_settings - data.settings.length;
  const setting = oneByOne
    ? [picker(left > 0 ? `Setting (${data.settings.length} of ${data.all_settings})` : 'Setting', 'setting',
      data.settings.map((name, place) => [place, name]), (value) => { state.setting = Number(value); refresh(); })]
    : [];
  const controls = make('div', { id: 'controls', role: 'group', 'aria-label': 'What all plots show' },
    make('div', { class: 'choices' },
      segments('x axis', 'x', [['step', 'steps'], ['time', 'time'], ['progress', 'progress']], state.x,
        (value) => { state.x = value; refresh(plots.filter((plot) => plot.curves)); }),
      ...seeds, ...setting),
    make('div', { class: 'chips', role: 'group', 'aria-label': 'Groups shown in all plots' },
      make('button', { type: 'button', class: 'button', id: 'show-all', onclick: () => { state.hidden.clear(); showChips(); } }, 'Show all'),
      make('button', {
        type: 'button', class: 'button', id: 'show-none',
        onclick: () => { state.hidden = new Set(keys()); showChips(); },
      }, 'None'),
      ...chips));
  fillSwatches(controls);
  document.getElementById('plots').before(controls);
  // headings reached from the contents must not end up behind the controls
  new ResizeObserver(() => { root.style.scrollPaddingTop = `${controls.offsetHeight + 24}px`; }).observe(controls);
}

/** All that can be shown and hidden. */
const keys = () => [...(oneByOne ? data.optimisers : data.groups).keys()];

function toggle(key) {
  if (!state.hidden.delete(key)) state.hidden.add(key);
  showChips();
}

function only(key) {
  state.hidden = new Set(keys().filter((other) => other !== key));
  showChips();
}

function showChips() {
  for (const chip of document.querySelectorAll('.chip')) {
    chip.setAttribute('aria-pressed', String(!state.hidden.has(Number(chip.dataset.key))));
  }
  refresh(plots.filter((plot) => plot.curves || plot.swept || plot.group !== undefined));
}
