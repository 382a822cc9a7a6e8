// Curves over time: loss, margins, KKT measures, norms, balance, sparsity, and any other column.

const X_AXES = {
  step: { kind: 'log', title: 'steps', hover: 'step %{x:,}', of: (row) => row.step.map((v) => (v > 0 ? v : null)) },
  time: { kind: 'exponent', title: 'time', hover: 'time 10<sup>%{x:.2f}</sup>', of: (row) => row.log10_time },
  progress: { kind: 'linear', title: 'progress −log₁₀ L', hover: 'L = 10<sup>−%{x:.2f}</sup>', of: (row) => row.log10_loss.map(negated) },
};
const Y_HOVER = { linear: '%{y:.5~g}', log: '%{y:.4~g}', exponent: '10<sup>%{y:.2f}</sup>' };
const LINEAR_OR_LOG = [['linear', 'linear'], ['log', 'log']];

const negated = (value) => (value === null ? null : -value);
const absolute = (value) => (value === null ? null : Math.abs(value));

const widened = ([low, high], value) => [Math.min(low, value), Math.max(high, value)];

/** Columns with numbers in some group, in the order of the data. */
const columnNames = () => {
  const names = new Set();
  for (const group of data.groups) for (const band of group.bands) names.add(band.column);
  return [...names];
};

/** What follows `prefix.` in the names of columns. */
const keysOf = (prefix) => columnNames().filter((name) => name.startsWith(`${prefix}.`)).map((name) => name.slice(prefix.length + 1));

/** The curves of one column in one group, as the choice about seeds wants them. */
function seriesOf(group, column, x) {
  if (state.seeds === 'each') {
    return group.runs.map((index) => data.runs[index]).flatMap((run) => {
      const values = (name) => run.values[run.columns.indexOf(name)] ?? [];
      const y = values(column);
      if (y.length === 0) return [];
      const row = { step: values('step'), log10_time: values('log10_time'), log10_loss: values('log10_loss') };
      return [{ x: x.of(row), y, label: `${group.label}, seed ${run.seed}` }];
    });
  }
  const band = group.bands.find((candidate) => candidate.column === column);
  if (!band) return [];
  const range = state.seeds === 'band' ? band.range : undefined;
  return [{ x: x.of(group.axes[band.axis]), y: band.mean, range, label: group.seeds > 1 ? `${group.label}, mean of ${group.seeds} seeds` : group.label }];
}

/** The area between two curves as closed outlines, one for every stretch without a gap. */
function outline(x, low, high) {
  const out = { x: [], y: [] };
  let from = 0;
  for (let at = 0; at <= x.length; at += 1) {
    const whole = at < x.length && x[at] !== null && low[at] != null && high[at] != null;
    if (whole) continue;
    if (at - from > 1) {
      const back = (values) => values.slice(from, at).reverse();
      if (out.x.length > 0) { out.x.push(null); out.y.push(null); }
      out.x.push(...x.slice(from, at), ...back(x));
      out.y.push(...high.slice(from, at), ...back(low));
    }
    from = at + 1;
  }
  return out;
}

/**
 * Builds a plot of columns over the chosen x axis.
 *
 * `columns` are { name, soft, note }; a soft one is thin and dotted. `y` is the kind of the y axis, `change` acts on every
 * value, `references` are horizontal lines.
 */
function curves({ columns, y, title = '', change = (value) => value, x: wanted = state.x, references = [] }) {
  const x = X_AXES[wanted];
  const drawable = (value) => {
    const changed = value === null ? null : change(value);
    return changed === null || (y === 'log' && changed <= 0) ? null : changed;
  };
  const areas = [];
  const lines = [];
  const span = { x: [Infinity, -Infinity], y: [Infinity, -Infinity] };
  data.groups.forEach((group, index) => {
    if (!isShown(index)) return;
    for (const { name, soft = false, note = '' } of columns) {
      for (const series of seriesOf(group, name, x)) {
        // step 0 has no place on a logarithmic axis and must not stretch the other one
        const values = series.y.map((value, at) => (series.x[at] === null ? null : drawable(value)));
        series.x.forEach((at, place) => {
          if (at === null || values[place] === null) return;
          span.x = widened(span.x, at);
          span.y = widened(span.y, values[place]);
        });
        const label = plain(series.label + note);
        lines.push({
          type: 'scatter', mode: values.length < 3 ? 'lines+markers' : 'lines', x: series.x, y: values, name: label, meta: labelOf(index),
          line: { color: colour(index), width: soft ? 1.2 : state.seeds === 'each' ? 1.4 : 2, dash: soft ? '2px,3px' : dash(index) },
          hovertemplate: `<b>${label}</b><br>${x.hover}<br>${Y_HOVER[y]}<extra></extra>`,
        });
        if (series.range && !soft) {
          areas.push({
            type: 'scatter', mode: 'none', ...outline(series.x, series.range[0].map(drawable), series.range[1].map(drawable)),
            fill: 'toself', fillcolor: transparent(colour(index), 0.16), hoverinfo: 'skip', showlegend: false, meta: labelOf(index),
          });
        }
      }
    }
  });
  for (const line of references) if (drawable(line.value) !== null) span.y = widened(span.y, line.value);
  const shown = references.filter((line) => drawable(line.value) !== null && lines.length > 0);
  const rules = shown.map((line) => ({
    type: 'scatter', mode: 'lines', x: span.x, y: [line.value, line.value], name: plain(line.label), meta: 'reference',
    line: { color: palette.ink, width: 1.2, dash: 'dash' }, hovertemplate: `${plain(line.label)}<extra></extra>`,
  }));
  const notes = shown.map((line) => ({
    xref: 'paper', x: 0.01, xanchor: 'left', y: y === 'log' ? Math.log10(line.value) : line.value, yanchor: 'bottom', showarrow: false,
    text: plain(line.label), font: { size: 11, color: palette.ink },
  }));
  if (lines.length === 0) {
    notes.push({ xref: 'paper', yref: 'paper', x: 0.5, y: 0.5, showarrow: false, text: 'nothing chosen' });
  }
  const xaxis = axis(x.kind, x.title, span.x);
  const yaxis = { ...axis(y, title, span.y), automargin: true };
  if (lines.length === 0) xaxis.showticklabels = yaxis.showticklabels = false;
  return {
    data: [...areas, ...rules, ...lines], x: wanted,
    layout: { xaxis, yaxis, annotations: notes, uirevision: `${wanted} ${y} ${title} ${columns.map((column) => column.name)}` },
  };
}

/** Plots of one column per key, side by side. */
function multiples(id, prefix, keys, title, choose) {
  return (grid) => {
    for (const key of keys) {
      addPlot(grid, { id: `${id}-${identifier(key)}`, title: title(key), curves: true, build: () => choose(`${prefix}.${key}`, key) });
    }
    setColumns(grid);
  };
}

/** Redraws the plots of a grid. */
const redraw = (grid) => refresh(plots.filter((plot) => grid.contains(plot.element)));

/** What is looked at first. */
function addFirstCurves() {
  addMargins();
  addLoss();
}

function addCurves() {
  addStationarity();
  addNorms();
  addBalance();
  addSparsity();
}

function addLoss() {
  if (!columnNames().includes('log10_loss')) return;
  let view = 'exponent';
  const tool = segments('View', 'loss-view', [['exponent', 'log L'], ['log', 'log–log: −log L']], view, (value) => { view = value; redraw(grid); });
  const grid = addSection('loss', 'Loss',
    'How far training went; in the log–log view −log₁₀ L stands on a logarithmic axis, so a straight line means that it grows like a power of x.', tool);
  addPlot(grid, {
    id: 'loss', title: 'Training loss', curves: true,
    build: () => {
      const columns = [{ name: 'log10_loss' }];
      // against itself the loss says nothing
      const x = state.x === 'progress' ? 'step' : state.x;
      const built = view === 'exponent'
        ? curves({ columns, y: 'exponent', title: 'loss L', x })
        : curves({ columns, y: 'log', title: '−log₁₀ L', change: negated, x });
      built.layout.margin = { l: 84, r: 16, t: 8, b: 46 };
      built.layout.yaxis.nticks = 9;
      built.layout.xaxis.nticks = 12;
      return built;
    },
  });
  setColumns(grid);
}

/** Before the data are separated soft margins lie far below zero; what happens above it is what counts. */
function upperPart(built, y) {
  if (y !== 'linear') return built;
  const values = built.data.flatMap((trace) => trace.y ?? []).filter((value) => Number.isFinite(value));
  const [low, high] = values.reduce(([l, h], value) => [Math.min(l, value), Math.max(h, value)], [0, 0]);
  if (high > 0) built.layout.yaxis.range = [Math.max(low, -0.3 * high) - 0.04 * high, 1.06 * high];
  return built;
}

function addMargins() {
  const keys = keysOf('margin');
  if (keys.length === 0) return;
  let y = 'linear';
  const soft = keysOf('soft_margin');
  const parts = [
    'The smallest margin divided by the norm of the parameters, in each norm; theory expects each optimiser to push the one of its own geometry.',
    soft.length > 0 ? 'Thin dotted: the soft margin.' : '',
    data.references.length > 0 ? 'Dashed: the exact optimum.' : '',
  ];
  const tool = segments('y axis', 'margin-y', LINEAR_OR_LOG, y, (value) => { y = value; redraw(grid); });
  const grid = addSection('margins', 'Margins', parts.filter(Boolean).join(' '), tool);
  multiples('margin', 'margin', keys, (key) => `${normLabel(key)} margin`, (name, key) => upperPart(curves({
    columns: [...(soft.includes(key) ? [{ name: `soft_margin.${key}`, soft: true, note: ', soft' }] : []), { name }], y,
    references: data.references.filter((line) => line.column === name),
  }), y))(grid);
}

function addStationarity() {
  const measures = [
    ['alignment', 'Alignment', 'linear', 'Cosine β between the parameters and the steepest direction in this norm; 1 once the direction has settled.'],
    ['kkt_gap', 'KKT gap', 'log', 'Fenchel–Young gap relative to the objective; it is 0 exactly where the point is stationary.'],
    ['kkt_slack', 'KKT slack', 'log', 'Multipliers spent on examples that are not closest to the boundary; 0 where slackness is complementary.'],
  ].filter(([prefix]) => keysOf(prefix).length > 0);
  if (measures.length === 0) return;
  const keys = [...new Set(measures.flatMap(([prefix]) => keysOf(prefix)))];
  let key = keys[0];
  const tool = picker('Norm', 'stationarity-norm', keys.map((name) => [name, normLabel(name)]), (value) => { key = value; redraw(grid); });
  const grid = addSection('stationarity', 'Alignment and KKT',
    'How close each point is to a stationary point of the margin problem in the chosen norm; the gaps should vanish in an optimiser’s own geometry.', tool);
  for (const [prefix, title, y, explanation] of measures) {
    addPlot(grid, { id: prefix.replace('_', '-'), title, explanation, curves: true, build: () => curves({ columns: [{ name: `${prefix}.${key}` }], y }) });
  }
  setColumns(grid);
}

function addNorms() {
  const keys = keysOf('norm');
  if (keys.length === 0) return;
  const grid = addSection('norms', 'Norms', 'The size of the parameters in each norm; the loss can only vanish if they grow without bound.');
  multiples('norm', 'norm', keys, (key) => `${normLabel(key)} norm`, (name) => curves({ columns: [{ name }], y: 'log' }))(grid);
}

function addBalance() {
  const keys = keysOf('balance_drift');
  if (keys.length === 0) return;
  const grid = addSection('balance', 'Balance',
    'How far the balance between layers has moved from its start; the continuous flow of a potential conserves it, so drift is the effect of finite steps.');
  multiples('balance', 'balance_drift', keys, (key) => `${key}: |drift|`, (name) => curves({ columns: [{ name }], y: 'log', change: absolute }))(grid);
}

function addSparsity() {
  const measures = [
    ['small_fraction', 'share of small weights', 'The share of weights that are tiny next to the largest of their block.'],
    ['participation', 'participation ratio', '(Σ|w|)²/Σw²: how many weights of a block carry it, from 1 to all of them.'],
    ['active_neurons', 'active neurons', 'Hidden units whose incoming and outgoing weights are not negligible next to the strongest unit.'],
  ].filter(([prefix]) => keysOf(prefix).length > 0);
  if (measures.length === 0) return;
  const tool = picker('Measure', 'sparsity-measure', measures.map(([prefix, title]) => [prefix, title]), (value) => choose(value));
  const grid = addSection('sparsity', 'Sparsity', measures[0][2], tool);
  const explanation = grid.parentElement.querySelector('.explain');
  let prefix = measures[0][0];
  // as many figures as the richest measure needs; a poorer one leaves some out
  const places = Math.max(...measures.map(([name]) => keysOf(name).length));
  for (let place = 0; place < places; place += 1) {
    addPlot(grid, {
      id: `sparsity-${place + 1}`, title: keysOf(prefix)[place] ?? '', curves: true,
      build: () => curves({ columns: [{ name: `${prefix}.${keysOf(prefix)[place]}` }], y: 'linear' }),
    });
  }
  const choose = (value) => {
    prefix = value;
    const [, title, words] = measures.find(([name]) => name === value);
    explanation.textContent = words;
    const keys = keysOf(value);
    [...grid.children].forEach((figure, place) => {
      figure.style.display = place < keys.length ? '' : 'none';
      figure.querySelector('h3').textContent = place < keys.length ? `${keys[place]}: ${title}` : '';
    });
    redraw(grid);
  };
  setColumns(grid);
  choose(prefix);
}

function addAnyColumn() {
  const names = columnNames().filter((name) => !['step', 'log10_loss', 'log10_time'].includes(name));
  if (names.length === 0) return;
  let name = names.includes('smallest_margin') ? 'smallest_margin' : names[0];
  let y = 'linear';
  const field = picker('Column', 'any-column', names.map((column) => [column, column]), (value) => {
    name = value;
    plot.heading.textContent = value;
    redraw(grid);
  });
  field.querySelector('select').value = name;
  const scale = segments('y axis', 'any-y', LINEAR_OR_LOG, y, (value) => { y = value; redraw(grid); });
  const grid = addSection('columns', 'Any measurement', 'Every recorded column, under the name it has in the tables.', field, scale);
  const plot = addPlot(grid, { id: 'column', title: name, curves: true, build: () => curves({ columns: [{ name }], y }) });
  setColumns(grid);
}
