// A real browser on a real server, for tests and screenshots: the sealed home is in the environment, $PROGRAM is the program.
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const { PROGRAM, TOOLS } = process.env;
const require = createRequire(join(TOOLS, 'package.json'));
const { chromium } = require('playwright-core');
export const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

/// Named conditions have this long on a loaded machine.
export const PATIENCE = 30000;

export function outlast(...args) {
  return execFileSync(PROGRAM, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

/// Exit code and what it said, for what may fail.
export function tried(...args) {
  try {
    return { code: 0, said: outlast(...args) };
  } catch (error) {
    return { code: error.status, said: `${error.stdout}${error.stderr}` };
  }
}

/// Starts a job in a folder, however that is called.
export const startIn = (cwd, name, command) => JSON.parse(execFileSync(PROGRAM, ['--json', 'run', '-d', '--name', name, '--', 'bash', '-c', command], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })).handle;

export const start = (name, command) => JSON.parse(outlast('--json', 'run', '-d', '--name', name, '--', 'bash', '-c', command)).handle;

/// What `outlast screen` says the terminal shows.
export const screen = (job) => JSON.parse(outlast('--json', 'screen', String(job))).rows.map((row) => row.trimEnd());

export function check(holds, what) {
  if (!holds) throw new Error(`this does not hold: ${what}`);
}

export async function eventually(what, holds, seconds = PATIENCE / 1000) {
  const until = Date.now() + seconds * 1000;
  let last;
  do {
    last = await holds();
    if (last === true) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  } while (Date.now() < until);
  throw new Error(`this did not happen: ${what}; last: ${JSON.stringify(last)}`);
}

const ended = [];

/// A server of the home.
export async function serve(options = [], env = {}) {
  const child = spawn(PROGRAM, ['--json', 'web', '--no-open', ...options], { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit'] });
  const gone = new Promise((resolve) => { child.on('exit', resolve); });
  const line = await new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).once('line', resolve);
    child.on('exit', (code) => reject(new Error(`the server ended with ${code}`)));
  });
  const server = { ...JSON.parse(line), pid: child.pid, kill: async () => { child.kill('SIGKILL'); await gone; } };
  ended.push(server.kill);
  return server;
}

/// A browser with a profile of its own. What a page complains about fails the test.
export async function browser(options = {}) {
  const profile = mkdtempSync(join(tmpdir(), 'outlast-chromium-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: '/usr/bin/chromium', headless: true, viewport: { width: 1280, height: 860 }, acceptDownloads: true, ...options,
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
  context.setDefaultTimeout(PATIENCE);
  const complaints = [];
  const watch = (page) => {
    page.on('pageerror', (error) => complaints.push(`error: ${error.message}`));
    page.on('console', (message) => { if (message.type() === 'error' && !/ERR_CONNECTION_REFUSED|WebSocket connection|Failed to load resource/.test(message.text())) complaints.push(`console: ${message.text()}`); });
    page.on('dialog', (dialog) => { complaints.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  };
  context.on('page', watch);
  context.pages().forEach(watch);
  ended.push(async () => { await context.close(); rmSync(profile, { recursive: true, force: true, maxRetries: 5 }); });
  const page = context.pages()[0] ?? (await context.newPage());
  return { context, page, complaints };
}

/// Runs a scenario, and ends all that it started.
export async function run(scenarios) {
  const name = process.argv[2];
  let code = 0;
  try {
    await scenarios[name]();
    console.log(`ok ${name}`);
  } catch (error) {
    console.log(`failed ${name}: ${error.stack}`);
    code = 1;
  }
  for (const end of ended.reverse()) await end().catch(() => {});
  process.exit(code);
}

export const address = (server, path) => new URL(path, server.address).href;
export const rowsOf = (page) => page.evaluate(() => window.outlast.rows());
