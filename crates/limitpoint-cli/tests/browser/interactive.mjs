// Says how long a page takes until it can be used: the first plot is drawn, a click is answered, everything is drawn.
//
//   node interactive.mjs ADDRESS BROWSER [TIMES]
//
// For measuring by hand; no test asks for a time. Each time is given twice: as it passed, and as the page's main thread was
// busy, which does not depend on what else the machine does. LIMITPOINT_PUPPETEER names a folder whose node_modules has
// puppeteer-core.

import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [address, executablePath, times = '5'] = process.argv.slice(2);
const home = process.env.LIMITPOINT_PUPPETEER ?? import.meta.dirname;
const puppeteer = (await import(pathToFileURL(createRequire(join(resolve(home), 'x.js')).resolve('puppeteer-core')))).default;

const browser = await puppeteer.launch({ executablePath, headless: true, args: ['--no-sandbox', '--disable-gpu'] });
try {
  for (let time = 0; time < Number(times); time += 1) {
    const page = await browser.newPage();
    await page.setViewport({ width: 1280, height: 900 });
    const session = await page.createCDPSession();
    await session.send('Performance.enable', { timeDomain: 'threadTicks' });
    const begin = performance.now();
    const now = async (what) => {
      const passed = performance.now() - begin;
      const { metrics } = await session.send('Performance.getMetrics');
      const busy = 1000 * metrics.find(({ name }) => name === 'TaskDuration').value;
      return `${what} ${passed.toFixed(0)} ms (busy ${busy.toFixed(0)} ms)`;
    };
    await page.goto(address, { waitUntil: 'domcontentloaded' });
    await page.waitForFunction(() => document.querySelector('.chip') && document.querySelector('.plot .main-svg'), { polling: 'raf' });
    const seen = [await now('first plot')];
    await page.evaluate(() => document.querySelector('.chip').click());
    await page.waitForFunction(() => document.querySelector('.chip').getAttribute('aria-pressed') === 'false', { polling: 'raf' });
    seen.push(await now('click answered'));
    await page.waitForFunction(() => document.documentElement.dataset.ready === 'true', { timeout: 120_000 });
    seen.push(await now('all drawn'));
    console.log(seen.join(', '));
    await page.close();
  }
} finally {
  await browser.close();
}
