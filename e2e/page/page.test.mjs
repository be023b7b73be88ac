// Tests the page in Chromium, with the scripted model and `bloomery serve` or the gateway on a cluster. The page is found as people find
// it: by labels, names of buttons and headings.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { ON_CLUSTER, startServers } from './servers.mjs';

const require = createRequire(`${process.env.PAGE_TOOLS}/`);
const puppeteer = require('puppeteer-core');
const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

/** The time in which everything appears, in milliseconds. On a cluster, a Job has a pod, and another one after each wait for a person. */
const TIMEOUT = ON_CLUSTER ? 120_000 : 20_000;

/** The most bytes that the first visit transfers. */
const MAX_BYTES = 150 * 1024;

const SHOTS = process.env.PAGE_SHOTS;
const WIDTHS = [1280, 360];
const SCHEMES = ['light', 'dark'];

let servers;
let browser;
let page;
/** The violations of the policy, and errors of scripts. */
const faults = [];

before(async () => {
  mkdirSync(SHOTS, { recursive: true });
  servers = await startServers();
  browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
  page = await newPage();
});

after(async () => {
  await browser?.close();
  await servers?.end();
});

async function newPage() {
  const created = await browser.newPage();
  await created.setViewport({ width: 1280, height: 900 });
  created.setDefaultTimeout(TIMEOUT);
  created.on('pageerror', (error) => faults.push(error.message));
  created.on('console', (message) => {
    if (/Content Security Policy|Trusted|TypeError/u.test(message.text())) faults.push(message.text());
  });
  return created;
}

/** Finds an element by its role and name, as a screen reader does. */
function find(role, name) {
  return page.locator(`::-p-aria([name="${name}"][role="${role}"])`).setTimeout(TIMEOUT);
}

/** Waits until the content of the page has a text. */
function see(text) {
  return page.waitForFunction((wanted) => document.getElementById('main').innerText.includes(wanted), {}, text);
}

/** Waits until the content of the page does not have a text. */
function miss(text) {
  return page.waitForFunction((unwanted) => !document.getElementById('main').innerText.includes(unwanted), {}, text);
}

async function goTo(hash, heading) {
  await page.evaluate((to) => { location.hash = to; }, hash);
  await page.waitForFunction((text) => document.querySelector('h1')?.innerText === text, {}, heading);
}

/** Opens all details of a Skill. */
function openDetails(skill) {
  return page.evaluate((name) => {
    for (const details of document.querySelectorAll('article:has(h2) details')) {
      if (details.closest('article').innerText.includes(name)) details.open = true;
    }
  }, skill);
}

/** Starts a Job with a goal. */
async function startJob(goal) {
  await goTo('#/start/desk', 'Start a Job');
  await find('textbox', 'Goal').fill(goal);
  await find('textbox', 'notes (file system, required)').fill(servers.notes);
  await find('button', 'Start the Job').click();
  await page.waitForFunction(() => location.hash.startsWith('#/jobs/'));
}

/** Checks that the page is accessible and as wide as the screen, in both schemes and widths, and makes screenshots. */
async function inspect(name) {
  for (const scheme of SCHEMES) {
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }, { name: 'prefers-reduced-motion', value: 'reduce' }]);
    for (const width of WIDTHS) {
      await page.setViewport({ width, height: 900 });
      await page.screenshot({ path: join(SHOTS, `${name}-${scheme}-${width}.png`), fullPage: true });
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), `${name} is wider than ${width}`);
      const violations = JSON.parse(await page.evaluate(`${AXE}; axe.run({ resultTypes: ['violations'] }).then((found) => JSON.stringify(found.violations))`));
      const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
      const texts = serious.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html).join(' ')}`);
      assert.deepEqual(texts, [], `${name}, ${scheme}, ${width}`);
    }
  }
  await page.setViewport({ width: 1280, height: 900 });
}

test('a wrong token is refused, and the page asks for another one', async () => {
  await page.goto(servers.url.replace(/token=.*/u, 'token=wrong'));
  await see(servers.refusal);
  await inspect('sign-in');
  const [, token] = servers.url.split('token=');
  await find('textbox', 'Token').fill(token);
  await find('button', 'Sign in').click();
  await see('There are no Jobs yet.');
});

test('the token of the address stays in this tab only, and the first visit is small', async () => {
  page = await newPage();
  const client = await page.createCDPSession();
  await client.send('Network.enable');
  // An earlier test has filled the cache.
  await client.send('Network.setCacheDisabled', { cacheDisabled: true });
  let bytes = 0;
  client.on('Network.loadingFinished', ({ encodedDataLength }) => { bytes += encodedDataLength; });
  const asked = [];
  page.on('request', (request) => asked.push(request.url()));
  await page.goto(servers.url);
  await see('There are no Jobs yet.');
  const [, token] = servers.url.split('token=');
  assert.ok(!page.url().includes(token), page.url());
  assert.equal(await page.evaluate(() => sessionStorage.getItem('bloomery.token')), token);
  assert.ok(asked.every((url) => url.startsWith(new URL(servers.url).origin)), 'an external address was asked');
  assert.ok(bytes > 10_000 && bytes <= MAX_BYTES, `${bytes} bytes`);
  console.log(`# the first visit transfers ${(bytes / 1024).toFixed(0)} KiB`);
});

test('Skills have their resources, features and tools', async () => {
  await goTo('#/skills', 'Skills');
  await see('The desk');
  await openDetails('The desk');
  for (const text of ['Keep the notes of an office', 'notes: file system, required', 'The last line is a name', servers.tools]) await see(text);
  await inspect('skills');
});

test('a Skill without tools does not deny that it has a server', async () => {
  await page.setRequestInterception(true);
  // A Skill on this machine has the tools of the core.
  const intercept = (request) => {
    if (!request.url().endsWith('/skills/desk/tools')) return request.continue();
    return request.respond({ contentType: 'application/json', body: '{"items": []}' });
  };
  page.on('request', intercept);
  await page.reload();
  await see('The desk');
  await openDetails('The desk');
  await see('The Skill has no tools of a server that its policy allows.');
  page.off('request', intercept);
  await page.setRequestInterception(false);
});

test('a Job is started, watched, answered and approved, and no text of a model runs', async () => {
  await goTo('#/start/desk', 'Start a Job');
  await see('Keep the notes of an office');
  await inspect('start');
  await startJob('Write a note');
  await see('This Job waits for people');
  await see('Which name? <img src=x onerror="document.title=\'hit\'">');
  await see('note 1 of 2');
  await inspect('question');
  await find('textbox', 'Answer').fill('Ada');
  await find('button', 'Send the answer').click();
  await see('Arguments, as they will be sent');
  await see('A note cannot be taken back');
  // No character of the arguments is hidden.
  await see('"content": "12345678901234567890\\u{202e} <script>document.title=\'hit\'</script>"');
  await inspect('approval');
  await find('button', 'Approve').click();
  await see('The answer passed every gate.');
  await see('It is written. <img src=x onerror="document.title=\'hit\'"><script>document.title=\'hit\'</script>');
  for (const text of ['Live', 'Waits for a decision', 'This Job waits for people', 'Cancel the Job']) await miss(text);
  for (const text of ['note 2 of 2', 'Opening', 'Work', 'Finalization', 'Budgets', 'of 8', 'of 10', 'approved it for owner']) await see(text);
  assert.equal(await page.evaluate(() => document.querySelectorAll('main img, main script').length), 0);
  assert.equal(await page.title(), 'Write a note · Bloomery');
  await inspect('ended');
});

test('a call is denied with a reason', async () => {
  await startJob('Overwrite it');
  await see('Arguments, as they will be sent');
  await find('textbox', 'Reason (the model reads it if you deny)').fill('It is needed');
  await find('button', 'Deny').click();
  await see('denied it for owner: It is needed');
  await see('It is not overwritten.');
});

/** Checks that a person without rights sees the arguments of a held call and the missing rights, and can do nothing. */
async function seeMissingRights(decide, cancel) {
  await see(`You may not do this: you lack ${decide}`);
  await see(`You may not do this: you lack ${cancel}`);
  await see('"path": "welcome.txt"');
  const isDisabled = await page.evaluate(() => Object.fromEntries(Array.from(document.querySelectorAll('main button'), ({ innerText, disabled }) => [innerText, disabled])));
  assert.deepEqual([isDisabled.Approve, isDisabled.Deny, isDisabled['Cancel the Job']], [true, true, true]);
  await inspect('missing-right');
}

test('a person without the right sees the arguments and the name of the right', { skip: ON_CLUSTER && 'a cluster has a second user: see the next test' }, async () => {
  await startJob('Overwrite it');
  await see('Arguments, as they will be sent');
  await page.setRequestInterception(true);
  // This machine has one user, who has all rights.
  const [decide, cancel] = ['the verb approve on approvers/owner', 'the verb patch on jobs'];
  const intercept = async (request) => {
    if (!request.url().endsWith('/projections/requests')) return request.continue();
    const response = await fetch(request.url(), { headers: { Authorization: request.headers().authorization } });
    const body = { ...(await response.json()), missing: { cancel, decide: { owner: decide } } };
    return request.respond({ contentType: 'application/json', body: JSON.stringify(body) });
  };
  page.on('request', intercept);
  await page.reload();
  await seeMissingRights(decide, cancel);
  page.off('request', intercept);
  await page.setRequestInterception(false);
});

test('another user sees the arguments and the missing rights, and is refused', { skip: !ON_CLUSTER && 'bloomery serve has one user' }, async () => {
  await startJob('Overwrite it');
  await see('Arguments, as they will be sent');
  const [owner, { hash }] = [page, new URL(page.url())];
  page = await newPage();
  await page.goto(servers.viewerUrl);
  await page.waitForFunction(() => document.querySelector('h1')?.innerText === 'Jobs');
  await goTo(hash, 'Overwrite it');
  await seeMissingRights('the verb approve on approvers.bloomery.dev/owner', 'the verb patch on skilljobs.bloomery.dev/');
  // The page is not what refuses.
  const status = await page.evaluate(async () => {
    const job = `api/jobs/${location.hash.split('/').pop()}`;
    const headers = { Authorization: `Bearer ${sessionStorage.getItem('bloomery.token')}`, 'Content-Type': 'application/json' };
    const open = await (await fetch(`${job}/projections/requests`, { headers })).json();
    const [held] = open.approvals;
    const body = JSON.stringify({ decision: 'approve', digest: held.digest, approver: 'owner' });
    return (await fetch(`${job}/approvals/${held.call}`, { method: 'POST', headers, body })).status;
  });
  assert.equal(status, 403);
  await page.close();
  page = owner;
  await page.bringToFront();
  await see('Arguments, as they will be sent');
});

test('a Job is cancelled with the keyboard alone', async () => {
  await startJob('Wait for me');
  await see('Are you there?');
  const press = async (name) => {
    // The first element is the skip link, so the focus begins there.
    for (let at = 0; at < 60; at += 1) {
      await page.keyboard.press('Tab');
      const focused = await page.evaluate(() => document.activeElement?.innerText);
      if (focused === name) return page.keyboard.press('Enter');
    }
    throw new Error(`the focus does not reach ${name}`);
  };
  await press('Cancel the Job');
  await page.waitForSelector('dialog[open]');
  await inspect('cancel');
  await press('Cancel the Job');
  await see('Cancelled');
  await see('Continue in a new Job');
});

test('the list of Jobs is filtered, and its addresses can be kept', async () => {
  await goTo('#/jobs', 'Jobs');
  await see('4 of 4 Jobs');
  await inspect('jobs');
  await find('combobox', 'State').fill('ended');
  await see('3 of 4 Jobs');
  await find('searchbox', 'Filter by text').fill('wait');
  await see('1 of 4 Jobs');
  await page.reload();
  await see('1 of 4 Jobs');
  await find('link', 'Wait for me').click();
  await page.waitForFunction(() => document.activeElement?.tagName === 'H1');
});

test('children are shown as a tree', async () => {
  await startJob('Ask the clerk');
  await see('There is one.');
  await see('Children');
  await find('button', 'Show its children').click();
  await see('It has no children.');
  await inspect('children');
  await find('link', 'clerk').click();
  await page.waitForFunction(() => document.querySelector('h1')?.innerText === 'Count the notes');
  await see('One.');
});

test('the page shows the end of a Job whose status follows its last event', async () => {
  // The status of a Job on a cluster may follow seconds later.
  let late = 0;
  const intercept = async (request) => {
    if (!/\/api\/jobs\/[^/]+$/u.test(request.url())) return request.continue();
    const response = await fetch(request.url(), { headers: { Authorization: request.headers().authorization } });
    const body = await response.json();
    if (body.status?.outcome && late < 6) {
      late += 1;
      Object.assign(body.status, { phase: 'Running', outcome: null });
    }
    return request.respond({ status: response.status, contentType: 'application/json', body: JSON.stringify(body) });
  };
  await page.setRequestInterception(true);
  page.on('request', intercept);
  await startJob('Count the notes');
  await see('Continue in a new Job');
  assert.equal(late, 6);
  page.off('request', intercept);
  await page.setRequestInterception(false);
});

test('the skip link leads to the content', async () => {
  await goTo('#/jobs', 'Jobs');
  await page.evaluate(() => document.activeElement?.blur());
  await page.focus('.skip');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'main');
});

test('no policy was violated and no script failed', () => {
  assert.deepEqual(faults, []);
});
