// The examples of the guide run as they are, and print what the page says.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

const page = readFileSync(new URL('../../../docs/guide/typescript.md', import.meta.url), 'utf8');
const examples = [...page.matchAll(/```js\n([^]*?)```\n\n```text\n([^]*?)```/g)];

test('every example runs and prints what the page says', async () => {
  assert.ok(examples.length >= 2);
  for (const [, code, said] of examples) {
    const folder = mkdtempSync(join(tmpdir(), 'outlast-page-'));
    const file = join(folder, 'example.mjs');
    writeFileSync(file, code.replace("'outlast'", JSON.stringify(new URL('../index.js', import.meta.url).href)));
    const ran = await promisify(execFile)(process.execPath, [file], { env: { ...process.env, OUTLAST_HOME: join(folder, 'jobs') }, timeout: 120_000 });
    assert.equal(ran.stdout, said);
  }
});
