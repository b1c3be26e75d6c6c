// What any client must be able to do with the server, in plain Node without a package: list, call, progress, cancel, in both
// eras of the protocol, over stdio and HTTP. The tests run it where node is present; `clients/run` has the real SDKs.
//
//   quick.mjs stdio PROGRAM [ARGUMENT...]
//   quick.mjs http URL TOKEN

import assert from 'node:assert';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const [transport, place, ...rest] = process.argv.slice(2);
const INFO = { name: 'quick', version: '1' };
const TOOLS = ['jobs', 'kill', 'read_output', 'read_shell', 'run_shell_command', 'send_input', 'wait_for'];
const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
  'io.modelcontextprotocol/clientInfo': INFO,
};

// A connection: send(message) says something, and hear(message) is called with all that comes.
function stdio(hear) {
  const server = spawn(place, rest, { stdio: ['pipe', 'pipe', 'inherit'] });
  createInterface({ input: server.stdout }).on('line', (line) => hear(JSON.parse(line)));
  const left = new Promise((resolve) => server.on('exit', resolve));
  return {
    send: (message) => server.stdin.write(JSON.stringify(message) + '\n'),
    close: async () => { server.stdin.end(); assert.strictEqual(await left, 0); },
  };
}

function http(hear) {
  let session;
  const requests = new Map();
  const send = async (message) => {
    const stop = new AbortController();
    if (message.id !== undefined) requests.set(message.id, stop);
    // In the newer era a call is given up by hanging up.
    if (message.method === 'notifications/cancelled' && !session) return requests.get(message.params.requestId).abort();
    const { name, uri } = message.params ?? {};
    const newer = message.params?._meta !== undefined && !session;
    const headers = {
      'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', Authorization: `Bearer ${rest[0]}`,
      ...(session ? { 'Mcp-Session-Id': session, 'MCP-Protocol-Version': '2025-06-18' } : {}),
      ...(newer ? { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': message.method, ...(name ?? uri ? { 'Mcp-Name': name ?? uri } : {}) } : {}),
    };
    try {
      const response = await fetch(place, { method: 'POST', headers, body: JSON.stringify(message), signal: stop.signal });
      session ??= response.headers.get('mcp-session-id') ?? undefined;
      let text = '';
      const decoder = new TextDecoder();
      for await (const piece of response.body ?? []) {
        text += decoder.decode(piece, { stream: true });
        const lines = text.split('\n');
        text = lines.pop();
        for (const line of lines) if (line.startsWith('data:') && line.length > 6) hear(JSON.parse(line.slice(5)));
      }
      if (text.trim().startsWith('{')) hear(JSON.parse(text));
    } catch (error) {
      if (error.name !== 'AbortError') throw error;
    }
  };
  return { send, close: async () => {} };
}

function client(newer) {
  const waiting = new Map();
  const progress = [];
  const connection = (transport === 'stdio' ? stdio : http)((message) => {
    if (message.method === 'notifications/progress') progress.push(message.params);
    if (message.id !== undefined && !message.method) waiting.get(message.id)?.(message);
  });
  let last = 0;
  const begin = (method, params = {}, meta = {}) => {
    const id = ++last;
    const _meta = { ...(newer ? META : {}), ...meta };
    const answer = new Promise((resolve) => waiting.set(id, resolve));
    connection.send({ jsonrpc: '2.0', id, method, params: Object.keys(_meta).length ? { ...params, _meta } : params });
    return { id, answer };
  };
  const request = async (method, params, meta) => {
    const answer = await begin(method, params, meta).answer;
    assert.ok(answer.result, JSON.stringify(answer));
    return answer.result;
  };
  const notify = (method, params = {}) => connection.send({ jsonrpc: '2.0', method, params });
  const call = (name, args, meta) => request('tools/call', { name, arguments: args }, meta);
  return { begin, request, notify, call, progress, close: connection.close };
}

async function check(newer) {
  const { begin, request, notify, call, progress, close } = client(newer);
  if (newer) {
    const found = await request('server/discover');
    assert.ok(found.supportedVersions.includes('2026-07-28'), JSON.stringify(found));
  } else {
    await request('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: INFO });
    await notify('notifications/initialized');
  }
  const { tools } = await request('tools/list');
  assert.deepStrictEqual(tools.map((tool) => tool.name).sort(), TOOLS);

  const failed = await call('run_shell_command', { command: 'echo hi; exit 3' });
  assert.strictEqual(failed.structuredContent.exit_code, 3);
  assert.match(failed.content[0].text, /hi/);

  await call('run_shell_command', { command: 'read x; echo "got $x"', name: newer ? 'newer' : 'older' }, { progressToken: 'p' });
  const waited = begin('tools/call', { name: 'wait_for', arguments: { handle: newer ? 'newer' : 'older', until: ['exit'] } },
    { progressToken: 'w' });
  while (!progress.some((step) => step.progressToken === 'w')) await new Promise(setImmediate);
  await call('send_input', { handle: newer ? 'newer' : 'older', input: 'y' });
  assert.match((await waited.answer).result.structuredContent.output, /got y/);

  // A call that is given up: the job goes on, and the next list says so.
  const { id } = begin('tools/call', { name: 'run_shell_command', arguments: { command: 'echo up; sleep 1000', ai_callback_delay: 40 } },
    { progressToken: 'c' });
  while (!progress.some((step) => step.progressToken === 'c')) await new Promise(setImmediate);
  await notify('notifications/cancelled', { requestId: id });
  let list;
  do list = await call('jobs', {}); while (!/your call was cancelled, the job went on/.test(list.content[0].text));
  const running = list.structuredContent.jobs.filter((job) => ['starting', 'running'].includes(job.status));
  assert.strictEqual(running.length, 1, JSON.stringify(list));
  await call('kill', { handle: String(running[0].handle) });
  await close();
  console.log(`ok ${transport} ${newer ? 'newer' : 'older'}`);
}

await check(false);
await check(true);
process.exit(0);
