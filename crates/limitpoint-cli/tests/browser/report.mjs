// Opens a report in a browser and uses it as a reader would. Every check that fails is one line; the exit status is then 1.
//
//   node report.mjs REPORT.html BROWSER [SCREENSHOTS]
//
// LIMITPOINT_PUPPETEER names a folder whose node_modules has puppeteer-core; without it, the one beside this file is used.

import { mkdir, mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [report, browserPath, screenshots] = process.argv.slice(2);
if (!report || !browserPath) {
  console.error('usage: node report.mjs REPORT.html BROWSER [SCREENSHOTS]');
  process.exit(2);
}
const home = process.env.LIMITPOINT_PUPPETEER ?? import.meta.dirname;
const puppeteer = (await import(pathToFileURL(createRequire(join(resolve(home), 'x.js')).resolve('puppeteer-core')))).default;

const address = pathToFileURL(resolve(report)).href;
const downloads = await mkdtemp(join(tmpdir(), 'limitpoint-downloads-'));
if (screenshots) await mkdir(screenshots, { recursive: true });
const failures = [];
let giveUp;
const broken = new Promise((_, reject) => { giveUp = reject; });
broken.catch(() => {});
let checks = 0;
const check = (what, holds, found = '') => {
  checks += 1;
  if (!holds) failures.push(found === '' ? what : `${what}; found ${JSON.stringify(found)}`);
};

const browser = await puppeteer.launch({ executablePath: browserPath, headless: true, args: ['--no-sandbox', '--disable-gpu'] });
try {
  const page = await openPage(1280, 'light');
  await thePictureComesFirst(page);
  await everythingIsDrawn(page);
  await chipsHideAGroupEverywhere(page);
  await axesCanBeSwitched(page);
  await settingsCanBeChosen(page);
  await theCursorIsShared(page);
  await selectsAndSliderWork(page);
  await themeCanBeSwitched(page);
  await plotsCanBeSaved(page);
  await page.close();
  for (const [width, theme] of [[390, 'light'], [390, 'dark'], [1280, 'dark']]) {
    const other = await openPage(width, theme);
    const body = await other.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    check(`the page fits ${width} px`, body[0] <= body[1], body);
    const shown = await other.evaluate(() => document.documentElement.dataset.shown);
    check(`a ${theme} system gets the ${theme} theme`, shown === theme, shown);
    await other.close();
  }
} catch (error) {
  failures.push(`stopped early: ${error.message}`);
} finally {
  await browser.close();
  await rm(downloads, { recursive: true, force: true });
}
for (const failure of failures) console.error(`failed: ${failure}`);
console.log(`${checks} checks, ${failures.length} failed`);
process.exit(failures.length > 0 || checks === 0 ? 1 : 0);

/** A page without a network that reports everything it should not do. */
async function openPage(width, theme) {
  const page = await browser.newPage();
  page.on('pageerror', (error) => { failures.push(`error in the page: ${error.message}`); giveUp(new Error('the page has an error')); });
  page.on('console', (message) => {
    if (['error', 'warn', 'warning'].includes(message.type())) failures.push(`console ${message.type()}: ${message.text()}`);
  });
  await page.setOfflineMode(true);
  await page.setRequestInterception(true);
  page.on('request', (request) => {
    const url = request.url();
    if (url.split('#')[0] === address || /^(data|blob):/.test(url)) return request.continue();
    failures.push(`the page asked for ${url}`);
    return request.abort();
  });
  const session = await page.createCDPSession();
  await session.send('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath: downloads });
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: theme }, { name: 'prefers-reduced-motion', value: 'reduce' }]);
  await page.setViewport({ width, height: 850, isMobile: width < 600, hasTouch: width < 600 });
  await page.goto(address, { waitUntil: 'load' });
  await settled(page);
  if (screenshots) await page.screenshot({ path: join(screenshots, `report-${width}-${theme}.png`), fullPage: true });
  return page;
}

/** Waits until every plot is drawn, or the page has an error. */
function settled(page) {
  return Promise.race([broken, page.waitForFunction(() => document.documentElement.dataset.ready === 'true', { timeout: 60_000 })]);
}

async function click(page, selector) {
  await page.$eval(selector, (element) => element.click());
  await settled(page);
}

/** What each plot shows: id, names of its groups, number of drawn curves, x axis. */
function shownPlots(page) {
  return page.evaluate(() => [...document.querySelectorAll('.plot')].filter((plot) => plot.offsetParent && plot.data).map((plot) => ({
    id: plot.id,
    groups: [...new Set(plot.data.map((trace) => trace.meta).filter(Boolean))],
    drawn: plot.querySelectorAll('svg.main-svg .trace path, svg.main-svg .hm image, svg.main-svg .contourlevel path, svg.main-svg .bars path').length,
    x: plot.layout.xaxis.title.text,
    type: plot.layout.xaxis.type,
  })));
}

async function everythingIsDrawn(page) {
  const expected = await page.evaluate(() => {
    const data = JSON.parse(document.getElementById('data').textContent);
    const names = [...new Set(data.groups.flatMap((group) => group.bands.map((band) => band.column)))];
    const count = (prefix) => names.filter((name) => name.startsWith(`${prefix}.`)).length;
    const some = (number) => (number > 0 ? 1 : 0);
    const first = ['small_fraction', 'participation', 'active_neurons'].map(count).find((number) => number > 0) ?? 0;
    const shown = data.groups.filter((group) => !data.one_by_one || group.setting === 0);
    return data.sweeps.reduce((sum, sweep) => sum + sweep.panels.length, 0)
      + some(names.includes('log10_loss')) + count('margin') + count('norm') + count('balance_drift') + first
      + ['alignment', 'kkt_gap', 'kkt_slack'].map((prefix) => some(count(prefix))).reduce((a, b) => a + b)
      + some(names.length) + some(data.runs.filter((run) => run.histograms.length > 0).length)
      + shown.filter((group) => group.portrait?.decision).length;
  });
  const plots = await shownPlots(page);
  check(`there are ${expected} plots`, plots.length === expected && expected > 0, plots.map((plot) => plot.id));
  for (const plot of plots) check(`${plot.id} has curves`, plot.drawn > 0, plot.drawn);
  const blank = await page.$$eval('.feature canvas', (canvases) => canvases.filter((canvas) => {
    const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    return new Set(new Uint32Array(pixels.buffer)).size < 2;
  }).length);
  check('every feature image is painted', blank === 0, blank);
  const links = await page.$$eval('#contents a', (all) => all.filter((link) => !document.querySelector(link.getAttribute('href'))).length);
  check('the contents lead somewhere', links === 0, links);
}

async function chipsHideAGroupEverywhere(page) {
  const label = await page.$eval('.chip', (chip) => chip.textContent);
  const before = await shownPlots(page);
  const holding = before.filter((plot) => plot.groups.includes(label)).map((plot) => plot.id);
  check('the first group is in several plots', holding.length > 1, holding);
  await click(page, '.chip');
  const hidden = await shownPlots(page);
  check('a chip hides its group in all plots', hidden.every((plot) => !plot.groups.includes(label)), hidden.filter((plot) => plot.groups.includes(label)));
  const curves = (plots) => plots.filter((plot) => holding.includes(plot.id)).reduce((sum, plot) => sum + plot.drawn, 0);
  check('hidden curves are gone from the drawing', curves(hidden) < curves(before), [curves(before), curves(hidden)]);
  await page.focus('.chip');
  await page.keyboard.press('Space');
  await settled(page);
  check('the keyboard brings it back', curves(await shownPlots(page)) === curves(before));
  await click(page, '#show-none');
  check('none hides all', (await shownPlots(page)).every((plot) => plot.groups.length === 0));
  await click(page, '#show-all');
  check('all shows all', curves(await shownPlots(page)) === curves(before));
}

async function axesCanBeSwitched(page) {
  const margins = async () => (await shownPlots(page)).find((plot) => plot.id.startsWith('plot-margin')) ?? {};
  check('the first x axis is steps', (await margins()).x === 'steps' && (await margins()).type === 'log', await margins());
  await click(page, 'input[name="x"][value="time"]');
  check('time can be chosen', (await margins()).x === 'time' && (await margins()).type === 'linear', await margins());
  await click(page, 'input[name="x"][value="progress"]');
  check('progress can be chosen', /progress/.test((await margins()).x), await margins());
  await click(page, 'input[name="x"][value="step"]');
  await click(page, 'input[name="loss-view"][value="log"]');
  const type = await page.$eval('#plot-loss', (plot) => plot.layout.yaxis.type);
  check('the log–log view of the loss has a logarithmic axis', type === 'log', type);
  await click(page, 'input[name="loss-view"][value="exponent"]');
  if (await page.$('input[name="seeds"]')) {
    const count = () => page.$eval('#plot-loss', (plot) => plot.data.length);
    const band = await count();
    await click(page, 'input[name="seeds"][value="mean"]');
    check('bands can be switched off', (await count()) < band, [band, await count()]);
    if (await page.$('input[name="seeds"][value="each"]')) {
      await click(page, 'input[name="seeds"][value="each"]');
      const runs = await page.evaluate(() => {
        const data = JSON.parse(document.getElementById('data').textContent);
        return data.groups.filter((group) => !data.one_by_one || group.setting === 0).reduce((sum, group) => sum + group.runs.length, 0);
      });
      check('every run can be shown', (await count()) === runs, [runs, await count()]);
    }
    await click(page, 'input[name="seeds"][value="band"]');
  }
}

/** A sweep shows one setting at a time, and its final values against what it varies. */
async function settingsCanBeChosen(page) {
  if (!(await page.$('#setting'))) return;
  const loss = () => page.$eval('#plot-loss', (plot) => JSON.stringify(plot.data.map((trace) => trace.y)));
  const first = await loss();
  const values = await page.$$eval('#setting option', (options) => options.map((option) => option.value));
  await page.select('#setting', values.at(-1));
  await settled(page);
  check('another setting has other curves', values.length > 1 && (await loss()) !== first, values.length);
  const swept = (await shownPlots(page)).filter((plot) => plot.id.startsWith('plot-sweep-'));
  check('final values are drawn against the setting', swept.length > 1 && swept.every((plot) => plot.type === 'log' && plot.drawn > 0), swept);
  await page.select('#setting', values[0]);
  await settled(page);
}

/** The picture: a table of shares, coloured by them, with something to read in both themes. */
async function thePictureComesFirst(page) {
  const found = await page.evaluate(() => {
    const cells = [...document.querySelectorAll('table.standing tbody td')];
    const shades = new Set(cells.map((cell) => getComputedStyle(cell).backgroundColor));
    const picture = document.getElementById('standing');
    const before = [...document.querySelectorAll('main section')][0] === picture;
    return { cells: cells.length, shades: shades.size, before };
  });
  check('the page begins with the picture', found.before && found.cells > 3 && found.shades > 2, found);
}

async function theCursorIsShared(page) {
  await page.$eval('#plot-loss', (plot) => plot.scrollIntoView({ block: 'center' }));
  const box = await (await page.$('#plot-loss .nsewdrag')).boundingBox();
  await page.mouse.move(box.x + box.width * 0.5, box.y + box.height * 0.5);
  await page.mouse.move(box.x + box.width * 0.6, box.y + box.height * 0.5);
  const visible = () => page.$$eval('.cursor', (all) => all.filter((cursor) => cursor.style.visibility === 'visible').length);
  const moved = await page.waitForFunction(() => [...document.querySelectorAll('.cursor')].filter((cursor) => cursor.style.visibility === 'visible').length > 1,
    { timeout: 5000 }).catch(() => null);
  check('hovering over one plot shows the place in others', moved !== null, await visible());
  await page.mouse.move(1, 1);
}

async function selectsAndSliderWork(page) {
  for (const id of ['stationarity-norm', 'sparsity-measure', 'any-column', 'histogram-block']) {
    if (!(await page.$(`#${id}`))) continue;
    const values = await page.$$eval(`#${id} option`, (options) => options.map((option) => option.value));
    await page.select(`#${id}`, values.at(-1));
    await settled(page);
    const empty = (await shownPlots(page)).filter((plot) => plot.drawn === 0).map((plot) => plot.id);
    check(`the last choice of ${id} is drawn`, empty.length === 0, empty);
  }
  if (await page.$('#histogram-step')) {
    const bars = () => page.$eval('#plot-histogram', (plot) => plot.data[0].y.join());
    const last = await bars();
    await page.focus('#histogram-step');
    await page.keyboard.press('Home');
    await settled(page);
    check('the slider changes the histogram', (await bars()) !== last);
  }
}

async function themeCanBeSwitched(page) {
  const look = () => page.evaluate(() => [getComputedStyle(document.body).backgroundColor, document.querySelector('.plot').layout.font.color]);
  const before = await look();
  await click(page, '#theme');
  const after = await look();
  check('the theme changes the page', before[0] !== after[0], after);
  check('the theme changes the plots', before[1] !== after[1], after);
  await click(page, '#theme');
  check('the theme changes back', (await look()).join() === before.join());
}

async function plotsCanBeSaved(page) {
  for (const [kind, good] of [['SVG', (bytes) => /^<svg[\s\S]*<path/.test(bytes.toString())], ['PNG', (bytes) => bytes.subarray(1, 4).toString() === 'PNG']]) {
    await page.$eval(`#plot-loss [data-title="Download as ${kind}"]`, (button) => button.click());
    const bytes = await downloaded(`.${kind.toLowerCase()}`);
    check(`a plot can be saved as ${kind}`, bytes !== null && good(bytes), bytes?.subarray(0, 60).toString() ?? 'no file');
    if (bytes && screenshots) await import('node:fs/promises').then(({ writeFile }) => writeFile(join(screenshots, `saved.${kind.toLowerCase()}`), bytes));
  }
}

async function downloaded(ending) {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const name = (await readdir(downloads)).find((file) => file.endsWith(ending));
    if (name) return readFile(join(downloads, name));
    await new Promise((done) => { setTimeout(done, 100); });
  }
  return null;
}
