// Pictures of the weights and of the trained models: histograms, paths of directions, decision regions, learned features, activation maps.

function addPictures() {
  addHistograms();
  addDirections();
  addDecisions();
  addFeatures();
  addActivationMaps();
}

// ---- weight histograms ----

function addHistograms() {
  const groupOf = (index) => data.groups.findIndex((group) => group.runs.includes(index));
  const recorded = data.runs.map((run, index) => ({ run, index, group: groupOf(index) }))
    .filter(({ run, group }) => run.histograms.length > 0 && group >= 0);
  if (recorded.length === 0) return;
  let entry = recorded[0];
  let block = entry.run.histograms[0].blocks[0]?.[0];
  let place = entry.run.histograms.length - 1;
  let y = 'linear';
  const blocksOf = (run) => [...new Set(run.histograms.flatMap((histogram) => histogram.blocks.map(([name]) => name)))];

  const runField = picker('Run', 'histogram-run', [], (value) => {
    entry = recorded.find(({ index }) => index === Number(value));
    fillBlocks();
    fillSteps();
    redraw(grid);
  });
  data.groups.forEach((group, index) => {
    const options = recorded.filter((candidate) => candidate.group === index)
      .map((candidate) => make('option', { value: candidate.index }, candidate.run.name));
    if (options.length > 0) runField.querySelector('select').append(make('optgroup', { label: group.label }, ...options));
  });
  const blockField = picker('Block', 'histogram-block', [], (value) => { block = value; redraw(grid); });
  const scale = segments('y axis', 'histogram-y', LINEAR_OR_LOG, y, (value) => { y = value; redraw(grid); });
  const grid = addSection('histograms', 'Weight histograms',
    'How many weights of a block have which size, relative to the largest of the block; move the slider to follow them through training.',
    runField, blockField, scale);
  const output = make('output', { for: 'histogram-step' });
  const slider = make('input', {
    type: 'range', id: 'histogram-step', min: 0, step: 1, 'aria-label': 'Recorded step',
    oninput: () => { place = Number(slider.value); showStep(); redraw(grid); },
  });
  const showStep = () => {
    const { histograms } = entry.run;
    output.textContent = `step ${histograms[place].step.toLocaleString('en')} (${place + 1} of ${histograms.length})`;
    slider.setAttribute('aria-valuetext', output.textContent);
  };
  const fillBlocks = () => {
    const names = blocksOf(entry.run);
    if (!names.includes(block)) [block] = names;
    const select = blockField.querySelector('select');
    select.replaceChildren(...names.map((name) => make('option', { value: name }, name)));
    select.value = block;
  };
  const fillSteps = () => {
    place = Math.min(place, entry.run.histograms.length - 1);
    slider.max = entry.run.histograms.length - 1;
    slider.value = place;
    showStep();
  };
  const countsAt = (histogram) => histogram.blocks.find(([name]) => name === block)?.[1] ?? [];
  const plot = addPlot(grid, {
    id: 'histogram', title: 'Weight sizes',
    build: () => {
      const counts = countsAt(entry.run.histograms[place]);
      const width = 1 / Math.max(counts.length, 1);
      // one scale for the whole run, so that moving the slider shows change
      const most = Math.max(1, ...entry.run.histograms.flatMap(countsAt));
      const xaxis = { ...axis('linear', '|w| / largest |w| of the block'), range: [0, 1] };
      const yaxis = { ...axis(y, 'weights'), range: y === 'log' ? [-0.3, Math.log10(most * 1.3)] : [0, most * 1.05] };
      return {
        data: [{
          type: 'bar', x: counts.map((_, bin) => (bin + 0.5) * width), y: counts, width, marker: { color: colour(entry.group), line: { color: palette.surface, width: 1 } },
          hovertemplate: '%{y:,} weights near %{x:.3f}<extra></extra>',
        }],
        layout: { xaxis, yaxis, bargap: 0, margin: { l: 70, r: 16, t: 8, b: 46 }, uirevision: `${entry.index} ${block} ${y}` },
      };
    },
  });
  plot.figure.append(make('div', { class: 'slider' }, slider, output));
  fillBlocks();
  fillSteps();
  setColumns(grid);
}

// ---- paths of directions in space ----

function addDirections() {
  const column = (run, name) => run.values[run.columns.indexOf(name)] ?? [];
  const paths = (group) => group.runs.map((run) => data.runs[run])
    .map((run) => ({ seed: run.seed, x: column(run, 'direction.1'), y: column(run, 'direction.2'), z: column(run, 'direction.3') }))
    .filter(({ z }) => z.length > 1);
  const shown = data.groups.map((group, index) => ({ group, index, runs: paths(group) })).filter(({ runs }) => runs.length > 0);
  if (shown.length === 0) return;
  const grid = addSection('directions', 'Path of the direction',
    'The weights divided by their length are a point of a sphere, seen here from above its pole; the circle is the equator, and paths begin at the dot.');
  for (const { group, index, runs } of shown) {
    const plot = addPlot(grid, { id: `direction-${index + 1}`, title: group.label, group: index, square: true, build: () => directionPaths(runs, index) });
    plot.heading.prepend(make('span', { class: 'swatch', 'data-group': index }));
    fillSwatches(plot.heading);
  }
  setColumns(grid);
}

function directionPaths(runs, index) {
  const circle = Array.from({ length: 181 }, (_, k) => 2 * Math.PI * k / 180);
  const equator = {
    type: 'scatter', mode: 'lines', x: circle.map(Math.cos), y: circle.map(Math.sin), hoverinfo: 'skip', line: { color: palette.ink, width: 1, dash: 'dot' },
  };
  const lines = runs.flatMap(({ seed, x, y, z }) => [
    {
      type: 'scatter', mode: 'lines', x, y, customdata: z, name: `seed ${seed}`, line: { color: colour(index), width: 1.8 },
      hovertemplate: `seed ${seed}<br>(%{x:.3f}, %{y:.3f}, %{customdata:.3f})<extra></extra>`,
    },
    { type: 'scatter', mode: 'markers', x: x.slice(0, 1), y: y.slice(0, 1), hoverinfo: 'skip', marker: { size: 7, color: colour(index) } },
  ]);
  const fixed = (title) => ({ ...axis('linear', title), range: [-1.1, 1.1], nticks: 5, constrain: 'domain' });
  return {
    data: [equator, ...lines],
    layout: {
      margin: { l: 44, r: 8, t: 6, b: 40 }, xaxis: fixed('first weight'),
      yaxis: { ...fixed('second weight'), scaleanchor: 'x' }, uirevision: 'direction', showlegend: false,
    },
  };
}

// ---- decision regions ----

function addDecisions() {
  const shown = data.groups.map((group, index) => ({ group, index, map: group.portrait?.decision })).filter(({ map }) => map);
  if (shown.length === 0) return;
  const grid = shown.some(({ map }) => hasClasses(map))
    ? addSection('decisions', 'Decision regions', 'The class each trained model chooses over the plane, with the training examples in the colours of theirs.')
    : addSection('decisions', 'Decision regions',
      'The score of each trained model over the plane, with the training examples; the thick line is the boundary where the score is 0.', colourScale('score'));
  for (const { group, index, map } of shown) {
    const plot = addPlot(grid, {
      id: `decision-${index + 1}`, title: group.label, group: index, square: true, build: () => decisionRegions(map),
    });
    markFigure(plot.heading, group, index);
  }
  setColumns(grid);
}

/** A swatch before a heading and the seed behind it. */
function markFigure(heading, group, index) {
  heading.prepend(make('span', { class: 'swatch', 'data-group': index }));
  if (group.runs.length > 1) heading.append(make('span', { class: 'formula' }, `seed ${group.portrait.seed}`));
  fillSwatches(heading);
}

const labelsOf = (map) => [...new Set(map.examples.map(([, , label]) => label))].sort((a, b) => a - b);

/** Whether a map holds winning classes, which are whole numbers from 0 on, and not scores. */
function hasClasses(map) {
  const whole = map.scores.every((row) => row.every((score) => score === null || (Number.isInteger(score) && score >= 0)));
  return whole && labelsOf(map).every((label) => label >= 0);
}

function decisionRegions(map) {
  const labels = labelsOf(map);
  const classes = hasClasses(map);
  const last = Math.max(1, ...labels, ...(classes ? map.scores.map((row) => Math.max(...row)) : []));
  const field = { x: map.x, y: map.y, z: map.scores, showscale: false, hoverinfo: 'skip' };
  const stepped = () => Array.from({ length: last + 1 }, (_, k) =>
    [k / (last + 1), (k + 1) / (last + 1)].map((at) => [at, transparent(colour(k), 0.35)])).flat();
  const heat = classes
    ? { ...field, type: 'heatmap', zmin: -0.5, zmax: last + 0.5, colorscale: stepped() }
    : { ...field, type: 'heatmap', zsmooth: 'best', zmin: -1, zmax: 1, colorscale: [[0, palette.negative], [0.5, palette.middle], [1, palette.positive]] };
  const boundary = {
    ...field, type: 'contour', contours: { coloring: 'none', start: 0, end: 0, size: 1, showlabels: false }, line: { color: palette.ink, width: 2.2 },
  };
  const symbols = ['circle', 'diamond', 'square', 'triangle-up', 'cross', 'star', 'x', 'pentagon'];
  const points = labels.map((label, place) => {
    const own = map.examples.filter((example) => example[2] === label);
    const fill = classes ? colour(Math.max(0, label)) : label > 0 ? palette.positive : palette.negative;
    return {
      type: 'scatter', mode: 'markers', x: own.map((example) => example[0]), y: own.map((example) => example[1]), name: `label ${label}`,
      marker: { size: 8, symbol: symbols[place % symbols.length], color: fill, line: { color: palette.ink, width: 1.2 } },
      hovertemplate: `label ${label}<br>(%{x:.3~g}, %{y:.3~g})<extra></extra>`,
    };
  });
  const fixed = (values, title) => ({ ...axis('linear', title), range: [values[0], values.at(-1)], showgrid: false, nticks: 5, constrain: 'domain' });
  return {
    data: [heat, ...(classes ? [] : [boundary]), ...points],
    layout: {
      margin: { l: 44, r: 8, t: 6, b: 40 }, xaxis: fixed(map.x, 'first input'),
      yaxis: { ...fixed(map.y, 'second input'), scaleanchor: 'x' }, uirevision: 'decision',
    },
  };
}

// ---- learned features ----

function addFeatures() {
  const shown = data.groups.map((group, index) => ({ group, index, features: group.portrait?.features }))
    .filter(({ features }) => features && features.images.length > 0);
  if (shown.length === 0) return;
  const grid = addSection('features', 'Learned features',
    'Incoming weights of the strongest hidden units as images, or the kernels of a first convolution, each divided by its largest weight; below them their strength relative to the strongest unit.',
    colourScale('weight'));
  grid.classList.add('pictures');
  const figures = shown.map(({ group, index, features }) => {
    const heading = make('h3', { id: `features-${index}` }, group.label);
    markFigure(heading, group, index);
    const canvases = features.images.map((_, unit) => make('canvas', {
      width: features.cols, height: features.rows, role: 'img',
      'aria-label': `${group.label}: unit ${unit + 1} of ${features.images.length}, relative strength ${strength(features, unit)}`,
    }));
    const cells = canvases.map((canvas, unit) => make('div', { class: 'feature' }, canvas, strength(features, unit)));
    const figure = make('figure', { 'aria-labelledby': heading.id }, heading, make('div', { class: 'features' }, ...cells));
    grid.append(figure);
    return { index, features, canvases, figure };
  });
  grid.dataset.columns = shown.length === 1 ? 1 : 2;
  let painted = '';
  painters.push(() => {
    for (const { index, figure } of figures) figure.hidden = !isShown(index);
    if (painted === root.dataset.shown) return;
    painted = root.dataset.shown;
    for (const { features, canvases } of figures) canvases.forEach((canvas, unit) => paintImage(canvas, features, unit));
  });
}

// ---- what examples become in layers of images ----

function addActivationMaps() {
  const shown = data.groups.map((group, index) => ({ group, index, maps: group.portrait?.maps ?? [] })).filter(({ maps }) => maps.length > 0);
  if (shown.length === 0) return;
  const grid = addSection('maps', 'Activation maps',
    'What the first training examples become in the layers of images, channel by channel, each layer divided by its largest number.',
    colourScale('activation'));
  grid.classList.add('pictures');
  const figures = shown.map(({ group, index, maps }) => {
    const heading = make('h3', { id: `maps-${index}` }, group.label);
    markFigure(heading, group, index);
    const painted = maps.map((map) => map.images.map((_, channel) => make('canvas', {
      width: map.cols, height: map.rows, role: 'img',
      'aria-label': `${group.label}: example ${map.example + 1}, layer ${map.layer}, channel ${channel + 1} of ${map.images.length}`,
    })));
    const rows = maps.flatMap((map, place) => [
      make('p', { class: 'explain' }, `example ${map.example + 1}, layer ${map.layer}`),
      make('div', { class: 'features' }, ...painted[place].map((canvas) => make('div', { class: 'feature' }, canvas))),
    ]);
    const figure = make('figure', { 'aria-labelledby': heading.id }, heading, ...rows);
    grid.append(figure);
    return { index, maps, painted, figure };
  });
  grid.dataset.columns = shown.length === 1 ? 1 : 2;
  let theme = '';
  painters.push(() => {
    for (const { index, figure } of figures) figure.hidden = !isShown(index);
    if (theme === root.dataset.shown) return;
    theme = root.dataset.shown;
    for (const { maps, painted } of figures) {
      maps.forEach((map, place) => painted[place].forEach((canvas, channel) => paintImage(canvas, map, channel)));
    }
  });
}

const strength = (features, unit) => features.strengths[unit]?.toFixed(2) ?? '';

/** −1 to 1 as colours from negative over the colour of the page to positive. */
function paintImage(canvas, features, unit) {
  const context = canvas.getContext('2d');
  const image = context.createImageData(features.cols, features.rows);
  const [low, middle, high] = [palette.negative, palette.middle, palette.positive].map(channels);
  features.images[unit].slice(0, features.rows * features.cols).forEach((value, pixel) => {
    const size = Math.min(1, Math.abs(value ?? 0));
    const end = value < 0 ? low : high;
    const mixed = middle.map((channel, k) => Math.round(channel + (end[k] - channel) * size));
    image.data.set([...mixed, 255], 4 * pixel);
  });
  context.putImageData(image, 0, 0);
}

/** A key to the diverging colours. */
function colourScale(what) {
  return make('div', { class: 'scale', role: 'img', 'aria-label': `Colours from ${what} −1 over 0 to +1` }, `${what} −1`, make('i'), '+1');
}
