// What the web view costs: the server, the page, a key, a long log. `cargo xtask web-figures` runs it and keeps what it prints.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { address, browser, check, eventually, outlast, rowsOf, run, serve, start } from './browser.mjs';

const whole = (name, otherwise) => Number(process.env[name] ?? otherwise);
const [JOBS, FULL_SCREEN, TILES, SECONDS, LOG_MIB] = [whole('JOBS', 50), whole('FULL_SCREEN', 10), 12, whole('SECONDS', 60), whole('LOG_MIB', 1024)];
const TICK = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

const median = (all) => [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)];
const ms = (value) => `${value.toFixed(value < 10 ? 1 : 0)} ms`;

/// Seconds of CPU that a process and its threads took so far.
function cpu(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICK;
}

/// Many jobs that print, and some that draw.
async function load(rows) {
  const draws = 'printf "\\e[?1049h"; while :; do printf "\\e[H"; for r in $(seq 1 20); do printf "\\e[%s;1H\\e[3%smrow %s of %s\\e[0m\\e[K" $r $((r%8)) $r $((i++)); done; sleep 0.1; done';
  const prints = 'i=0; while :; do i=$((i+1)); printf "\\e[2m%s\\e[0m GET /v1/orders/%s \\e[32m200\\e[0m\\n" $i $((i*37%900)); sleep 0.1; done';
  for (let job = 0; job < JOBS; job += 1) start(`job-${job}`, job < FULL_SCREEN ? draws : prints);
  const server = await serve();
  const { page, context } = await browser({ viewport: { width: 1700, height: 1240 } });
  await page.goto(server.url);
  await page.waitForSelector('#jobs .card');
  await eventually('the tiles show something', async () => (await page.$$eval('#jobs .tile .rows', (all) => all.filter((one) => one.textContent).length)) >= TILES);
  const [{ value: paint }] = await page.evaluate(() => performance.getEntriesByType('paint').filter((one) => one.name === 'first-contentful-paint').map((one) => ({ value: one.startTime })));
  const shown = await page.$$eval('#jobs .tile', (all) => all.filter((one) => { const { top, bottom } = one.getBoundingClientRect(); return bottom > 0 && top < innerHeight; }).length);
  const session = await context.newCDPSession(page);
  // CPU time of the main thread, not the time on the clock.
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  const metric = async (name) => (await session.send('Performance.getMetrics')).metrics.find((one) => one.name === name).value;
  const before = [cpu(server.pid), await metric('TaskDuration'), performance.now()];
  await page.waitForTimeout(SECONDS * 1000);
  const after = [cpu(server.pid), await metric('TaskDuration'), performance.now()];
  const [served, main, took] = after.map((value, index) => value - before[index]);
  const share = (value) => `${((value / (took / 1000)) * 100).toFixed(1)} %`;
  rows.push([`server: ${JOBS} jobs at 10 lines a second, ${FULL_SCREEN} of them full-screen, ${shown} tiles in view, ${SECONDS} s`, 'under 10 % of a core', `${share(served)} (${served.toFixed(2)} CPU seconds)`]);
  rows.push(["the browser's main thread meanwhile", 'under 30 %', share(main)]);
  rows.push(['first contentful paint of the list, with these jobs', 'under 500 ms', ms(paint)]);
  outlast('kill', '--all');
  return { server, page, context };
}

/// From a key to its echo on the screen.
async function key(rows, { server, page }) {
  const job = start('echo', 'stty -icanon; cat > /dev/null');
  await page.goto(address(server, `/job/${job}`));
  await page.waitForFunction(() => window.outlast);
  const sent = await page.evaluate(() => performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation')).map((one) => one.encodedBodySize).reduce((a, b) => a + b, 0));
  rows.push(['all that the page of a job loads, compressed', 'under 250 KB', `${(sent / 1000).toFixed(0)} KB`]);
  await page.click('#take');
  await page.waitForFunction(() => window.outlast.mine());
  await page.click('#screen');
  await page.evaluate(() => {
    window.times = [];
    let pressed = null;
    addEventListener('keydown', () => { pressed = performance.now(); }, true);
    window.outlast.parsed(() => { if (pressed !== null) { window.times.push(performance.now() - pressed); pressed = null; } });
  });
  for (let count = 1; count <= 100; count += 1) {
    await page.keyboard.press('x');
    await page.waitForFunction((wanted) => window.times.length >= wanted, count);
  }
  const times = await page.evaluate(() => window.times);
  rows.push(['keydown to the parsed echo, median of 100', 'under 20 ms', ms(median(times))]);
  outlast('kill', String(job));
}

/// A long log beside a short one.
async function long(rows, { server, page }) {
  const line = 'x'.repeat(62);
  const small = start('small', `yes ${line} | head -c 1024; sleep 6000`);
  const large = start('large', `yes ${line} | head -c ${LOG_MIB << 20}; echo; echo finished; sleep 6000`);
  outlast('wait', String(large), '--pattern', 'finished', '--deadline', '1h');
  const opens = async (job, wanted) => {
    const all = [];
    for (let time = 0; time < 7; time += 1) {
      const began = performance.now();
      await page.goto(address(server, `/job/${job}`));
      await page.waitForFunction(() => window.outlast);
      await eventually('it is shown', async () => (await rowsOf(page)).some((row) => row.includes(wanted)));
      all.push(performance.now() - began);
    }
    return median(all);
  };
  const [short, long] = [await opens(small, line), await opens(large, 'finished')];
  rows.push([`opening a log of ${LOG_MIB} MiB, against one of 1 KiB (median of 7)`, 'as fast', `${ms(long)} against ${ms(short)}: ${(long / short).toFixed(2)} times`]);
  outlast('kill', '--all');
}

/// Moments of a long log of a program that draws.
async function moments(rows, { server, page }) {
  const mib = whole('MOMENTS_MIB', LOG_MIB);
  const program = `import sys, time\nrow = lambda r, n: f"\\x1b[{r};1H\\x1b[3{n % 8}mrow {r} of {n:8} " + "x" * 90 + "\\x1b[0m"\nsys.stdout.write("\\x1b[?1049h")\nn = written = 0\nwhile written < ${mib} << 20:\n    n += 1\n    frame = "".join(row(r, n) for r in range(1, 39))\n    sys.stdout.write(frame)\n    written += len(frame)\nsys.stdout.flush()\nprint("\\x1b[40;1Hfinished", end="", flush=True)\ntime.sleep(6000)`;
  const job = JSON.parse(outlast('--json', 'run', '-d', '--name', 'drawn', '--', 'python3', '-c', program)).handle;
  outlast('wait', String(job), '--pattern', 'finished', '--deadline', '1h');
  await page.goto(address(server, `/job/${job}`));
  await page.waitForFunction(() => window.outlast);
  await page.click('#tab-timeline');
  const began = performance.now();
  await eventually('the last moment is shown', async () => page.evaluate(() => document.querySelector('#timeline').dataset.shown !== undefined), 3600);
  const first = performance.now() - began;
  const length = await page.evaluate(() => Number(document.querySelector('#timeline input[type=range]').max));
  const times = [];
  for (let count = 0; count < 60; count += 1) {
    const at = Math.floor(((count * 37) % 60) / 60 * length);
    const asked = performance.now();
    await page.evaluate((to) => { const slider = document.querySelector('#timeline input[type=range]'); slider.value = to; slider.dispatchEvent(new Event('input')); }, at);
    await page.waitForFunction((wanted) => Math.abs(Number(document.querySelector('#timeline').dataset.shown) - wanted) <= 1, at, { timeout: 120000 });
    times.push(performance.now() - asked);
  }
  times.sort((a, b) => a - b);
  rows.push([`any moment of a full-screen log of ${mib} MiB, after the first visit (60 moments)`, 'under 200 ms', `${ms(median(times))}, the slowest ${ms(times.at(-1))}; the first visit took ${ms(first)}`]);
  outlast('kill', '--all');
}

await run({
  figures: async () => {
    const rows = [];
    const before = loadavg()[0];
    const shared = await load(rows);
    await key(rows, shared);
    await long(rows, shared);
    await moments(rows, shared);
    check(rows.length === 7, 'all were measured');
    const table = ['| what | target | measured |', '|---|---|---|', ...rows.map((row) => `| ${row.join(' | ')} |`)].join('\n');
    console.log(`figures\n${table}\n\nThe machine's load was ${before.toFixed(1)} before and ${loadavg()[0].toFixed(1)} after the run, Chromium included.`);
  },
});
