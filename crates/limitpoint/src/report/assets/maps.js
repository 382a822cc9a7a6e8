// Final values against two settings of a sweep: a map per optimiser, all of them on one scale.

const VIRIDIS = [[0, '#440154'], [0.25, '#3b528b'], [0.5, '#21918c'], [0.75, '#5ec962'], [1, '#fde725']];

function addMaps() {
  for (const number of data.maps.keys()) {
    const map = data.maps[number];
    const columns = [...new Map(map.panels.map((panel) => [panel.column, panel.label]))];
    let column = columns[0][0];
    const [across, up] = map.keys;
    const id = `map-${identifier(across)}-${identifier(up)}`;
    const tool = picker('Quantity', `${id}-quantity`, columns, (value) => { column = value; redraw(grid); });
    const others = map.others.length > 0 ? ` and over ${map.others.join(', ')}` : '';
    const grid = addSection(id, `Against ${across} and ${up}`,
      `Final values for each ${across} and ${up}: means over the seeds${others}, of the runs that did not fail. Nothing is drawn where no run has a number.`, tool);
    for (const optimiser of new Set(map.panels.map((panel) => panel.optimiser))) {
      addPlot(grid, {
        id: `${id}-${optimiser}`, title: data.optimisers[optimiser], swept: true,
        // a page that follows runs gets new numbers
        build: () => settingsMap(data.maps[number], column, optimiser),
      });
    }
    setColumns(grid);
  }
}

function settingsMap(map, column, optimiser) {
  const alike = map.panels.filter((panel) => panel.column === column);
  const exponent = column === 'log10_loss';
  const percent = column === 'test_accuracy';
  const numbers = alike.flatMap((panel) => panel.mean.flat()).filter((value) => value !== null);
  const own = alike.find((panel) => panel.optimiser === optimiser);
  const z = own?.mean ?? [];
  const value = percent ? '%{z:.2%}' : exponent ? '10<sup>%{z:.2f}</sup>' : '%{z:.4~g}';
  const counts = (own?.runs ?? []).map((row) => row.map((count) => `${count} run${count === 1 ? '' : 's'}`));
  const named = (values, key) => ({ ...axis('linear', key), type: 'category', categoryorder: 'array', categoryarray: values, showgrid: false, automargin: true });
  const [across, up] = map.keys.map(plain);
  return {
    data: [{
      type: 'heatmap', x: map.values[0], y: map.values[1], z, customdata: counts, xgap: 1, ygap: 1, colorscale: VIRIDIS,
      zmin: Math.min(...numbers), zmax: Math.max(...numbers), hoverongaps: false,
      colorbar: {
        thickness: 10, outlinewidth: 0, tickfont: { size: 11 }, ...(percent ? { tickformat: '.0%' } : { exponentformat: 'power' }),
        ...(exponent ? { tickprefix: '10<sup>', ticksuffix: '</sup>', exponentformat: 'none' } : {}),
      },
      hovertemplate: `${across} = %{x}<br>${up} = %{y}<br>${value}<br>%{customdata}<extra></extra>`,
    }],
    layout: { xaxis: named(map.values[0], map.keys[0]), yaxis: named(map.values[1], map.keys[1]), uirevision: column },
  };
}
