// The client with real jobs.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Outlast, OutlastError, awaitingInput, exit, output, pattern, port } from '../index.js';

// Longer than anything takes on a busy machine.
const deadlineMs = 90_000;
const folder = mkdtempSync(join(tmpdir(), 'outlast-sdk-'));
let outlast;

before(() => {
  outlast = new Outlast({ home: join(folder, 'jobs') });
});

after(async () => {
  for (const { handle } of await outlast.jobs({ running: true })) await (await outlast.find(handle)).kill({ graceMs: 100 });
  await outlast.close();
  // A keeper writes its last lines a moment after its job has ended.
  const end = Date.now() + 60_000;
  while (existsSync(folder)) {
    try {
      rmSync(folder, { recursive: true });
    } catch (error) {
      if (Date.now() > end) throw error;
    }
  }
});

test('a job says how it ended and what it printed', async () => {
  const job = await outlast.run('echo hello; exit 3', { name: 'first' });
  const receipt = await job.result({ deadlineMs });
  assert.deepEqual([receipt.code, receipt.endedBy, receipt.ok], [3, 'itself', false]);
  assert.equal((await job.output()).text, 'hello\n');
  assert.equal((await (await outlast.find('first')).info()).status, 'failed');
});

test('waits come back for each condition', async () => {
  const job = await outlast.run('echo ready 42; read x; echo got $x; python3 -m http.server 0');
  assert.deepEqual((await job.wait([pattern(/ready (\d+)/)], { from: 0, deadlineMs })).match.groups, ['42']);
  assert.equal((await job.wait([awaitingInput()], { from: 0, deadlineMs })).reason, 'awaiting_input');
  assert.equal((await job.wait([output()], { deadlineMs: 50 })).timedOut, true);
  const sent = await job.send('you\n');
  assert.equal((await job.wait([pattern('got you')], { from: sent.offset, deadlineMs })).match.text, 'got you');
  assert.ok((await job.wait([port()], { deadlineMs })).port > 0);
  await job.kill({ graceMs: 100 });
  assert.equal((await job.result({ deadlineMs })).endedBy, 'kill');
});

test('a REPL is asked and its screen seen', async () => {
  const job = await outlast.run(['python3', '-q'], { size: { cols: 60, rows: 10 } });
  await job.wait([awaitingInput()], { from: 0, deadlineMs });
  assert.match(await job.ask('6 * 7', undefined, { deadlineMs }), /42/);
  const screen = await job.screen();
  assert.ok(screen.rows.includes('42'));
  assert.deepEqual(screen.size, { cols: 60, rows: 10 });
  await job.send('', { keys: ['Ctrl-D'] });
  assert.equal((await job.result({ deadlineMs })).code, 0);
});

test('the first of several ends a wait, and output is followed to its last byte', async () => {
  const slow = await outlast.run('sleep 600');
  const fast = await outlast.run('seq 1 50000', { pipes: true });
  const pieces = [];
  for await (const piece of fast.follow()) pieces.push(piece);
  const wanted = Array.from({ length: 50_000 }, (_, n) => `${n + 1}\n`).join('');
  assert.equal(Buffer.concat(pieces).toString(), wanted);
  const first = await outlast.waitAny([slow, fast], [exit()], { deadlineMs });
  assert.equal(first.job, fast);
});

test('a wait that is aborted is given up, and a failure says what to do', async () => {
  const job = await outlast.run('sleep 600');
  const abort = new AbortController();
  const waiting = job.wait([exit()], { signal: abort.signal });
  setImmediate(() => abort.abort());
  await assert.rejects(waiting, { name: 'AbortError' });
  assert.equal(await job.receipt(), undefined);
  await assert.rejects(outlast.find('nobody'), (error) => error instanceof OutlastError && error.kind === 'no_such_job' && !!error.hint);
});

test('a shell remembers, and says how each command ended', async () => {
  const shell = outlast.shell('main');
  const first = await shell.run('cd / && greeting=hello; (exit 7)', { deadlineMs });
  assert.deepEqual([first.code, first.folder], [7, '/']);
  const second = await outlast.shell('main').run('echo "$greeting from $PWD"', { deadlineMs });
  assert.deepEqual([second.code, second.output], [0, 'hello from /\n']);
  assert.equal((await shell.run('exit 3', { deadlineMs })).code, 3);
  assert.equal((await shell.run('echo anew', { deadlineMs })).output, 'anew\n');
});

test('hundreds of calls at once share a relay', async () => {
  const job = await outlast.run('echo x');
  await job.result({ deadlineMs });
  const texts = await Promise.all(Array.from({ length: 500 }, () => job.output()));
  assert.ok(texts.every(({ text }) => text === 'x\n'));
});
