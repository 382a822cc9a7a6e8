// Final values against what a sweep varies: one figure per quantity, one line per optimiser.

function addSweeps() {
  for (const [number, sweep] of data.sweeps.entries()) {
    const others = sweep.others.length > 0 ? ` and over ${sweep.others.join(', ')}` : '';
    let y = 'linear';
    const tool = segments('y axis', `sweep-y-${number}`, LINEAR_OR_LOG, y, (value) => { y = value; redraw(grid); });
    const grid = addSection(`sweep-${identifier(sweep.key)}`, `Against ${sweep.key}`,
      `Final values for each ${sweep.key}: mean and range over the seeds${others}, of the runs that did not fail.`, tool);
    for (const [place, panel] of sweep.panels.entries()) {
      addPlot(grid, {
        id: `sweep-${identifier(sweep.key)}-${identifier(panel.column)}`, title: panel.label, swept: true,
        // a page that follows runs gets new numbers
        build: () => againstSetting(data.sweeps[number], data.sweeps[number].panels[place], mayBeLog(panel.column) ? y : 'linear'),
      });
    }
    setColumns(grid);
  }
}

/** Whether a logarithmic axis suits a quantity: margins and τ, and nothing that is a logarithm, a slope or a share. */
const mayBeLog = (column) => column.startsWith('margin.') || column.startsWith('tau.') || column === 'certificate.tau';

/** The colour and dash of an optimiser; where groups have colours of their own, those of its first one. */
const keyOfOptimiser = (place) => (oneByOne ? place : data.groups.findIndex((group) => group.optimiser === place));

function againstSetting(sweep, panel, y) {
  const numeric = sweep.places.length > 0;
  const x = numeric ? sweep.places : sweep.values;
  const exponent = panel.column === 'log10_loss';
  const percent = panel.column === 'test_accuracy';
  const kind = exponent ? 'exponent' : y;
  const drawable = (value) => (value === null || (y === 'log' && value <= 0) ? null : value);
  const span = [Infinity, -Infinity];
  const areas = [];
  const lines = [];
  panel.lines.forEach((line, place) => {
    const key = keyOfOptimiser(place);
    const hidden = oneByOne ? state.hidden.has(place)
      : data.groups.every((group, index) => group.optimiser !== place || state.hidden.has(index));
    if (hidden || line.mean.length === 0) return;
    const name = plain(data.optimisers[place]);
    const mean = line.mean.map(drawable);
    for (const value of mean) if (value !== null) [span[0], span[1]] = widened(span, value);
    lines.push({
      type: 'scatter', mode: 'lines+markers', x, y: mean, name, meta: data.optimisers[place], customdata: line.runs.map((count) => `${count} run${count === 1 ? '' : 's'}`),
      line: { color: colourOf(key), width: 2, dash: dashOf(key) }, marker: { size: x.length > 20 ? 4 : 6, color: colourOf(key) },
      hovertemplate: `<b>${name}</b><br>${plain(sweep.key)} = %{x}<br>${percent ? '%{y:.2%}' : Y_HOVER[kind]}<br>%{customdata}<extra></extra>`,
    });
    if (!line.range) return;
    areas.push({
      type: 'scatter', mode: 'none', ...outline(x, line.range[0].map(drawable), line.range[1].map(drawable)),
      fill: 'toself', fillcolor: transparent(colourOf(key), 0.16), hoverinfo: 'skip', showlegend: false, meta: data.optimisers[place],
    });
  });
  const across = numeric ? axis(sweep.logarithmic ? 'log' : 'linear', sweep.key, [x[0], x.at(-1)]) : { ...axis('linear', sweep.key), type: 'category' };
  // few values are named one by one
  const named = numeric && sweep.values.length <= 8;
  if (named) Object.assign(across, { tickmode: 'array', tickvals: x, ticktext: sweep.values });
  const up = { ...axis(kind, '', span), automargin: true, ...(percent ? { tickformat: '.1%' } : {}) };
  return { named, data: [...areas, ...lines], layout: { xaxis: across, yaxis: up, uirevision: `${panel.column} ${y}` } };
}
