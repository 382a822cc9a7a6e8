// The page's state and what every part shares: colours, sections, the order of drawing, the common cursor.
// Numbers come finished from the data; a missing one is null and stays a gap.

const root = document.documentElement;
const data = JSON.parse(document.getElementById('data').textContent);
const state = { x: 'step', seeds: 'band', setting: 0, hidden: new Set() };
/** A sweep too large to show at once is shown one setting at a time; chips and colours are then those of optimisers. */
let oneByOne = data?.one_by_one ?? false;
/** Everything Plotly draws. */
const plots = [];
/** Functions that redraw everything else after a change of theme or of the groups shown. */
const painters = [];
const coarse = matchMedia('(pointer: coarse)').matches;
const narrow = () => innerWidth < 680;

function start() {
  if (!data) return;
  prepareTheme();
  build();
  followPointer();
}

/** Everything that depends on the data, but for the parts that come as HTML. */
function build() {
  fillSwatches(document);
  if (data.groups.length > 0) {
    addControls();
    addSweeps();
    addMaps();
    addFirstCurves();
    section = document.getElementById('more-plots');
    addCurves();
    addPictures();
    addAnyColumn();
    if (plots.length === 0 && painters.length === 0) document.getElementById('controls').remove();
  }
  addContents();
  refresh();
}

// ---- small helpers ----

/** A new element: attributes, then children; text is never read as HTML. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children);
  return element;
}

/** Text for Plotly, which reads a few tags. */
const plain = (text) => String(text).replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');

/** `linf` as `ℓ∞`, also inside longer keys. */
const normLabel = (key) => key.replace(/(^|[^a-z])l(inf|\d)/g, (_, before, p) => `${before}ℓ${p === 'inf' ? '∞' : p}`);

const identifier = (text) => text.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '') || 'x';

// ---- colours: one per group, the same everywhere; a further eight groups differ by dash ----

/** What a group is shown and hidden by: itself, or its optimiser where settings are shown one by one. */
const keyOf = (index) => (oneByOne ? data.groups[index].optimiser : index);

const labelOfKey = (key) => (oneByOne ? data.optimisers[key] : data.groups[key].label);
const labelOf = (index) => labelOfKey(keyOf(index));

const isShown = (index) => !state.hidden.has(keyOf(index)) && (!oneByOne || data.groups[index].setting === state.setting);

const DASHES = ['solid', '10px,4px', '8px,3px,2px,3px', '14px,3px,2px,3px,2px,3px'];
let palette = {};

function readPalette() {
  const style = getComputedStyle(root);
  const names = ['page', 'surface', 'ink', 'muted', 'line', 'grid', 'accent', 'negative', 'middle', 'positive'];
  palette = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  palette.groups = Array.from({ length: 8 }, (_, i) => style.getPropertyValue(`--g${i}`).trim());
}

const colourOf = (key) => palette.groups[key % 8];
const dashOf = (key) => DASHES[Math.floor(key / 8) % DASHES.length];
const colour = (index) => colourOf(keyOf(index));
const dash = (index) => dashOf(keyOf(index));

/** A colour as [red, green, blue]. */
const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
const transparent = (hex, opacity) => `rgba(${channels(hex).join(',')},${opacity})`;

/** Samples of lines beside names; a sample says which group, or which key of colours, it stands for. */
function fillSwatches(where) {
  for (const swatch of where.querySelectorAll('.swatch[data-group], .swatch[data-key]')) {
    const group = Number(swatch.dataset.group);
    const key = swatch.dataset.key === undefined ? keyOf(group) : Number(swatch.dataset.key);
    const pattern = dashOf(key) === 'solid' ? '' : dashOf(key).replaceAll('px', '');
    const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    svg.setAttribute('viewBox', '0 0 22 10');
    svg.setAttribute('aria-hidden', 'true');
    const line = document.createElementNS('http://www.w3.org/2000/svg', 'path');
    line.setAttribute('d', 'M0 5H22');
    line.setAttribute('style', `stroke:var(--g${key % 8});stroke-width:3.5;stroke-dasharray:${pattern || 'none'}`);
    svg.append(line);
    swatch.replaceChildren(svg);
  }
}

// ---- sections ----

/** Where sections go: the first curves before the words and tables, the others behind them. */
let section = document.getElementById('plots');

/** A section of the plots with its heading, one sentence and its tools. */
function addSection(id, title, explanation, ...tools) {
  const grid = make('div', { class: 'grid' });
  const added = make('section', { id, 'data-nav': title },
    make('div', { class: 'head' }, make('h2', {}, title), make('div', { class: 'tools' }, ...tools)),
    make('p', { class: 'explain' }, explanation), grid);
  section.append(added);
  return grid;
}

/** As many columns as leave no lonely figure in the last row, three at most. */
function setColumns(grid) {
  const count = grid.children.length;
  grid.dataset.columns = count === 1 ? 1 : count === 2 || count === 4 ? 2 : 3;
}

function addContents() {
  const links = [...document.querySelectorAll('[data-nav]')].map((section) =>
    make('a', { href: `#${section.id}` }, section.dataset.nav));
  document.getElementById('contents').append(...links);
}

// ---- drawing: what is on screen first, the rest while nobody waits ----

/**
 * A figure Plotly draws. `build()` gives { data, layout, x }: the traces, the layout, and the name of the quantity on the
 * x axis if the common cursor applies; `named` says that the ticks of the x axis are to stay as they are.
 */
function addPlot(grid, { id, title, explanation, build, curves = false, swept = false, group, square = false }) {
  const element = make('div', { class: square ? 'plot square' : 'plot', id: `plot-${id}` });
  const cursor = make('div', { class: 'cursor' });
  const heading = make('h3', { id: `title-${id}` }, title);
  const figure = make('figure', { 'aria-labelledby': `title-${id}` }, heading, element,
    ...(explanation ? [make('p', { class: 'explain' }, explanation)] : []));
  grid.append(figure);
  const plot = { id, heading, figure, element, cursor, build, curves, swept, group };
  plots.push(plot);
  return plot;
}

const waiting = new Set();
let working = false;

function refresh(list = plots) {
  for (const paint of painters) paint();
  for (const plot of list) waiting.add(plot);
  root.dataset.ready = 'false';
  if (!working) {
    working = true;
    requestAnimationFrame(work);
  }
}

const onScreen = (plot) => {
  const { top, bottom } = plot.figure.getBoundingClientRect();
  return bottom > -200 && top < innerHeight + 200;
};

async function work() {
  const until = performance.now() + 30;
  while (waiting.size > 0 && performance.now() < until) {
    const list = [...waiting];
    const next = list.find(onScreen) ?? list[0];
    waiting.delete(next);
    await draw(next);
  }
  if (waiting.size === 0) {
    working = false;
    root.dataset.ready = 'true';
  } else if (![...waiting].some(onScreen) && window.requestIdleCallback) {
    requestIdleCallback(work, { timeout: 100 });
  } else {
    setTimeout(work, 0);
  }
}

async function draw(plot) {
  plot.figure.hidden = plot.group !== undefined && !isShown(plot.group);
  if (plot.figure.hidden || plot.figure.style.display === 'none') return;
  const built = plot.build();
  plot.x = built.x;
  plot.named = built.named;
  await Plotly.react(plot.element, built.data, { ...baseLayout(), ...built.layout }, {
    displaylogo: false,
    showTips: false,
    displayModeBar: true,
    responsive: true,
    doubleClick: 'reset+autosize',
    modeBarButtons: [[
      { name: 'svg', title: 'Download as SVG', icon: VECTOR_ICON, click: () => download(plot, 'svg') },
      { name: 'png', title: 'Download as PNG', icon: Plotly.Icons.camera, click: () => download(plot, 'png') },
      'resetScale2d',
    ]],
  });
  if (!plot.cursor.isConnected) {
    plot.element.append(plot.cursor);
    plot.element.on('plotly_relayout', () => fitTicks(plot));
  }
  // its place may have changed while it was hidden
  if (Math.abs(plot.element._fullLayout.width - plot.element.clientWidth) > 1) await Plotly.Plots.resize(plot.element);
  fitTicks(plot);
}

/** A curve between two handles. */
const VECTOR_ICON = {
  width: 24, height: 24,
  path: 'M2 16h6v2.2C13.5 17.6 15.4 12 16.2 8H14V2h8v6h-3.8C17.2 14.5 14 19.6 8 20.2V22H2zM4 18v2h2v-2zM16 4v2h4V4z',
};

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif';

function baseLayout() {
  return {
    autosize: true,
    margin: { l: 60, r: 14, t: 8, b: 44 },
    paper_bgcolor: 'rgba(0,0,0,0)',
    plot_bgcolor: 'rgba(0,0,0,0)',
    font: { family: FONT, size: 12, color: palette.muted },
    hoverlabel: { bgcolor: palette.surface, bordercolor: palette.line, font: { family: FONT, size: 12, color: palette.ink }, align: 'left', namelength: -1 },
    modebar: { bgcolor: 'rgba(0,0,0,0)', color: palette.muted, activecolor: palette.ink },
    showlegend: false,
    hovermode: 'closest',
    hoverdistance: 24,
    dragmode: coarse ? false : 'zoom',
  };
}

/**
 * An axis: `linear`, `log`, or `exponent`, where the numbers are exponents of ten on a linear scale. `span` is the range of
 * the numbers, for the ticks of a logarithmic axis.
 */
function axis(kind, title, span = [1, 10]) {
  const shape = {
    linear: { type: 'linear', exponentformat: 'power' },
    log: { type: 'log', ...(span[0] <= span[1] ? logTicks(Math.log10(span[0]), Math.log10(span[1])) : {}) },
    exponent: { type: 'linear', exponentformat: 'none', tickformat: '~f', tickprefix: '10<sup>', ticksuffix: '</sup>' },
  }[kind];
  return {
    ...shape,
    title: { text: title, standoff: 6, font: { size: 12 } },
    gridcolor: palette.grid,
    linecolor: palette.line,
    tickcolor: palette.line,
    ticks: 'outside',
    ticklen: 4,
    showline: true,
    zeroline: false,
    fixedrange: coarse,
    nticks: 7,
  };
}

/** Ticks of a logarithmic axis between two powers of ten, and one decade beyond: powers alone, or 1, 2, 5 where it is short. */
function logTicks(low, high) {
  const decades = high - low;
  const stride = Math.max(1, Math.ceil(decades / 6));
  const digits = decades > 2.4 ? [1] : decades > 0.45 ? [1, 2, 5] : decades > 0.2 ? [1, 1.5, 2, 3, 4, 5, 6, 8] : null;
  if (digits === null) return { tickmode: 'auto', exponentformat: 'power' };
  const plainly = low > -4 && high < 4 && stride === 1;
  const tickvals = [];
  const ticktext = [];
  for (let power = Math.floor(low / stride) * stride - stride; power <= high + stride; power += stride) {
    for (const digit of digits) {
      tickvals.push(Number(`${digit}e${power}`));
      const ten = power === 0 ? '1' : power === 1 ? '10' : `10<sup>${String(power).replace('-', '−')}</sup>`;
      ticktext.push(plainly ? String(Number(`${digit}e${power}`)) : digit === 1 ? ten : `${digit}·${ten}`);
    }
  }
  return { tickmode: 'array', tickvals, ticktext };
}

/** After zooming: ticks that suit what is left of a logarithmic axis. */
function fitTicks(plot) {
  const changes = {};
  for (const name of ['xaxis', 'yaxis']) {
    const full = plot.element._fullLayout[name];
    if (full?.type !== 'log' || (name === 'xaxis' && plot.named)) continue;
    const ticks = logTicks(...full.range);
    const before = plot.element.layout[name];
    if (ticks.tickmode === (before.tickmode ?? 'auto') && String(ticks.ticktext) === String(before.ticktext)) continue;
    if (ticks.ticktext && before.ticktext && visibleTicks(ticks, full.range) === visibleTicks(before, full.range)) continue;
    for (const [key, value] of Object.entries(ticks)) changes[`${name}.${key}`] = value;
  }
  if (Object.keys(changes).length > 0) Plotly.relayout(plot.element, changes);
}

const visibleTicks = ({ tickvals, ticktext }, [low, high]) =>
  ticktext.filter((_, at) => tickvals[at] >= 10 ** low && tickvals[at] <= 10 ** high).join();

/** Saves a plot as it is shown, with a title, a legend and a background of its own. */
async function download(plot, format) {
  const built = plot.build();
  const zoomed = (name) => {
    const shown = plot.element.layout[name];
    return { ...built.layout[name], ...(shown?.autorange === false ? { range: shown.range, autorange: false } : {}) };
  };
  const layout = {
    ...baseLayout(), ...built.layout, xaxis: zoomed('xaxis'), yaxis: zoomed('yaxis'), autosize: false,
    title: { text: plain(plot.heading.textContent), font: { size: 17, color: palette.ink }, x: 0.02, xanchor: 'left' },
    margin: { l: 76, r: 20, t: 52, b: 56 }, showlegend: plot.curves || plot.swept, paper_bgcolor: palette.surface,
  };
  const size = plot.group === undefined ? { width: 920, height: 560 } : { width: 620, height: 620 };
  await Plotly.downloadImage({ data: built.data, layout }, {
    format, ...size, scale: format === 'png' ? 2 : 1, filename: `${identifier(data.name)}-${plot.id}`,
  });
}

// ---- one cursor for all plots with the same x axis ----

function followPointer() {
  let event = null;
  const place = () => {
    const source = event && plots.find((plot) => plot.x && plot.element.contains(event.target));
    const layout = source?.element._fullLayout;
    let at = null;
    if (layout?.xaxis) {
      const box = source.element.getBoundingClientRect();
      const across = event.clientX - box.left - layout.xaxis._offset;
      const down = event.clientY - box.top - layout.yaxis._offset;
      const inside = across >= 0 && across <= layout.xaxis._length && down >= 0 && down <= layout.yaxis._length;
      if (inside) at = layout.xaxis.p2d(across);
    }
    event = null;
    for (const plot of plots) placeCursor(plot, plot.x === source?.x ? at : null);
  };
  const note = (latest) => {
    if (event === null) requestAnimationFrame(place);
    event = latest;
  };
  document.querySelector('main').addEventListener('pointermove', note);
  document.querySelector('main').addEventListener('pointerleave', note);
}

function placeCursor(plot, at) {
  const layout = plot.element._fullLayout;
  const across = at === null || !layout?.xaxis ? NaN : layout.xaxis.d2p(at);
  const visible = across >= 0 && across <= layout.xaxis._length;
  plot.cursor.style.visibility = visible ? 'visible' : 'hidden';
  if (!visible) return;
  plot.cursor.style.height = `${layout.yaxis._length}px`;
  plot.cursor.style.transform = `translate(${layout.xaxis._offset + across}px, ${layout.yaxis._offset}px)`;
}
