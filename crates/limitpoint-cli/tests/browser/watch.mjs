// Opens the page of `limitpoint watch` while a run writes, and waits until its curves grow and its end is shown.
//
//   node watch.mjs ADDRESS BROWSER
//
// LIMITPOINT_PUPPETEER names a folder whose node_modules has puppeteer-core.

import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [address, executablePath] = process.argv.slice(2);
const home = process.env.LIMITPOINT_PUPPETEER ?? import.meta.dirname;
const puppeteer = (await import(pathToFileURL(createRequire(join(resolve(home), 'x.js')).resolve('puppeteer-core')))).default;
const failures = [];

// twenty who only listen: each is told the newest version at once, and one more as the run goes on
const listen = async () => {
  const answer = await fetch(new URL('events', address));
  const reader = answer.body.getReader();
  const versions = new Set();
  let text = '';
  while (versions.size < 2) {
    const { value, done } = await reader.read();
    if (done) break;
    text += new TextDecoder().decode(value);
    for (const [, version] of text.matchAll(/data: ?(\d+)/g)) versions.add(version);
  }
  await reader.cancel();
  return versions.size;
};
const listeners = Promise.all(Array.from({ length: 20 }, listen));

const browser = await puppeteer.launch({ executablePath, headless: true, args: ['--no-sandbox', '--disable-gpu'] });
try {
  const page = await browser.newPage();
  page.on('pageerror', (error) => failures.push(`error in the page: ${error.message}`));
  page.on('console', (message) => {
    if (['error', 'warn', 'warning'].includes(message.type())) failures.push(`console ${message.type()}: ${message.text()}`);
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(new URL(address).origin) && !/^(data|blob):/.test(request.url())) failures.push(`the page asked for ${request.url()}`);
  });
  await page.goto(address, { waitUntil: 'load' });
  const points = () => page.evaluate(() => (document.getElementById('plot-loss')?.data ?? []).reduce((most, trace) => Math.max(most, trace.x.length), 0));
  await page.waitForFunction(() => document.getElementById('plot-loss')?.data?.length > 0, { timeout: 60_000 });
  const before = await points();
  await page.waitForFunction((count) => document.getElementById('plot-loss').data.some((trace) => trace.x.length > count), { timeout: 60_000 }, before);
  const work = await page.$eval('#work', (section) => section.textContent);
  if (!/running|done/.test(work)) failures.push(`who is at work is not said: ${work}`);
  await page.waitForFunction(() => document.getElementById('work-done')?.textContent === '1', { timeout: 120_000 });
  await page.waitForFunction(() => document.querySelector('#part-certificates')?.textContent.includes('margin'), { timeout: 60_000 });
  console.log(`the loss had ${before} points, then ${await points()}`);
  const told = await listeners;
  if (told.some((versions) => versions < 2)) failures.push(`listeners were told ${told}`);
} catch (error) {
  failures.push(`stopped early: ${error.message}`);
} finally {
  await browser.close();
}
for (const failure of failures) console.error(`failed: ${failure}`);
process.exit(failures.length > 0 ? 1 : 0);
