// What every TypeScript client must be able to do with the server: list, call, progress, cancel.
//
//   checks.mjs v1|v2|v2-auto stdio PROGRAM
//   checks.mjs v1|v2|v2-auto http URL TOKEN
//
// The packages are looked up in the folder CLIENTS_NODE.

import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import assert from 'node:assert';

const require = createRequire(process.env.CLIENTS_NODE + '/package.json');
const load = async (name) => import(pathToFileURL(require.resolve(name)).href).then((m) => m.default ?? m);
const [kind, transport, place, token] = process.argv.slice(2);
const TOOLS = ['jobs', 'kill', 'read_output', 'read_shell', 'run_shell_command', 'send_input', 'wait_for'];

async function open() {
  const v1 = kind === 'v1';
  const { Client } = await load(v1 ? '@modelcontextprotocol/sdk/client/index.js' : '@modelcontextprotocol/client');
  const { StdioClientTransport } = await load(v1 ? '@modelcontextprotocol/sdk/client/stdio.js' : '@modelcontextprotocol/client/stdio');
  const { StreamableHTTPClientTransport } = await load(
    v1 ? '@modelcontextprotocol/sdk/client/streamableHttp.js' : '@modelcontextprotocol/client');
  const options = kind === 'v2-auto' ? { versionNegotiation: { mode: 'auto' } } : {};
  const client = new Client({ name: `checks-${kind}`, version: '1' }, options);
  await client.connect(transport === 'stdio'
    ? new StdioClientTransport({ command: place, args: ['mcp'], env: { ...process.env } })
    : new StreamableHTTPClientTransport(new URL(place), { requestInit: { headers: { Authorization: `Bearer ${token}` } } }));
  const call = (name, args, options) => kind === 'v1'
    ? client.callTool({ name, arguments: args }, undefined, options)
    : client.callTool({ name, arguments: args }, options);
  return { client, call };
}

const checks = {
  async lists({ client }) {
    const { tools } = await client.listTools();
    assert.deepStrictEqual(tools.map((tool) => tool.name).sort(), TOOLS);
  },
  async calls({ call }) {
    const result = await call('run_shell_command', { command: 'echo hi; exit 3' });
    assert.strictEqual(result.structuredContent.exit_code, 3);
    assert.match(result.content[0].text, /hi/);
  },
  async progresses({ call }) {
    const heard = [];
    const result = await call('run_shell_command', { command: 'sleep 4; echo slept', ai_callback_delay: 20 },
      { onprogress: (progress) => heard.push(progress) });
    assert.match(result.structuredContent.output, /slept/);
    assert.ok(heard.length >= 2, JSON.stringify(heard));
  },
  async cancels({ call }) {
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 1500);
    await assert.rejects(call('run_shell_command', { command: 'sleep 60', ai_callback_delay: 40 }, { signal: stop.signal }));
    const { jobs } = (await call('jobs', {})).structuredContent;
    const running = jobs.filter((job) => job.status === 'running');
    assert.strictEqual(running.length, 1, JSON.stringify(jobs));
    await call('kill', { handle: String(running[0].handle) });
  },
};

let failed = 0;
for (const [name, check] of Object.entries(checks)) {
  const label = `node ${kind} ${transport} ${name}`;
  let opened;
  try {
    const late = new Promise((_, no) => setTimeout(() => no(new Error('not done within 30 s')), 30_000).unref());
    await Promise.race([(async () => { opened = await open(); await check(opened); })(), late]);
    console.log(`ok   ${label}`);
  } catch (error) {
    failed = 1;
    console.log(`FAIL ${label}: ${String(error.message ?? error).split('\n')[0]}`);
    console.error(error);
  }
  await opened?.client.close().catch(() => {});
}
process.exit(failed);
