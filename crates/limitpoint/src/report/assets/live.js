
// Follows the runs: when the server says that something is new, asks for it and draws it in place.

/** What a page is built of; while it stays the same, curves only grow. */
const structure = () => JSON.stringify([
  data.one_by_one, data.singles, data.settings, data.sweeps.map((sweep) => [sweep.key, sweep.values, sweep.panels.map((panel) => panel.column)]),
  data.maps.map((map) => [map.keys, map.values, map.panels.map((panel) => [panel.column, panel.optimiser])]),
  data.groups.map((group) => [group.label, group.bands.map((band) => band.column), Boolean(group.portrait)]),
  data.runs.map((run) => run.histograms.length > 0),
]);

function replacePlots() {
  for (const plot of plots) Plotly.purge(plot.element);
  plots.length = 0;
  painters.length = 0;
  waiting.clear();
  state.hidden.clear();
  state.setting = 0;
  for (const id of ['plots', 'more-plots', 'contents']) document.getElementById(id).replaceChildren();
  section = document.getElementById('plots');
  build();
}

async function update() {
  const answer = await fetch('parts');
  if (!answer.ok) return;
  const fresh = await answer.json();
  for (const [name, html] of Object.entries(fresh.parts)) {
    const place = document.getElementById(`part-${name}`);
    if (place && place.dataset.text !== html) {
      place.innerHTML = html;
      place.dataset.text = html;
    }
  }
  const before = structure();
  for (const key of Object.keys(data)) delete data[key];
  Object.assign(data, fresh.data);
  oneByOne = data.one_by_one;
  fillSwatches(document);
  if (structure() === before) refresh();
  else replacePlots();
  root.dataset.version = fresh.version;
}

function follow() {
  const events = new EventSource('events');
  let busy = false;
  let wanted = root.dataset.version;
  const catchUp = async () => {
    if (busy) return;
    busy = true;
    try {
      while (String(root.dataset.version) !== String(wanted)) {
        const asked = wanted;
        await update();
        if (String(root.dataset.version) !== String(asked)) break;
      }
    } finally {
      busy = false;
    }
  };
  events.addEventListener('message', (event) => {
    wanted = event.data;
    root.dataset.live = 'yes';
    catchUp();
  });
  events.addEventListener('error', () => { root.dataset.live = 'no'; });
}
if (data) follow();
