// The TypeScript SDK as an editor: a watcher started in one turn, two more prompts while it ticks.
//
//   ticks.mjs WATCHER AGENT...      prints what its handlers got: COUNT lines, then the last status
//
// The package is looked up in the folder CLIENTS_NODE.

import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { Readable, Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';

const require = createRequire(process.env.CLIENTS_NODE + '/package.json');
const acp = await import(pathToFileURL(require.resolve('@agentclientprotocol/sdk')).href);
const [watcher, program, ...args] = process.argv.slice(2);
const agent = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));

let ticks = 0;
let ended;
const end = new Promise((resolve) => { ended = resolve; });
const app = acp.client({ name: 'ticks' })
  .onNotification(acp.methods.client.session.update, ({ params }) => {
    const { update } = params;
    if (update.sessionUpdate !== 'tool_call_update' || update.toolCallId !== 'job-1') return;
    if (update._meta?.['outlast.dev/stream_output']) ticks += 1;
    if (update.status === 'completed' || update.status === 'failed') ended(update.status);
  })
  .onRequest(acp.methods.client.session.requestPermission, () => ({ outcome: { outcome: 'cancelled' } }));

await app.connectWith(stream, async (ctx) => {
  const { methods } = acp;
  await ctx.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
  const { sessionId } = await ctx.request(methods.agent.session.new, { cwd: process.cwd(), mcpServers: [] });
  const prompt = (text) => ctx.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text }] });
  const heard = async (count) => { while (ticks < count) await new Promise((later) => setTimeout(later, 50)); };
  await prompt(watcher);
  await heard(2);
  await prompt('echo a haiku');
  await heard(9);
  const third = prompt('sleep 300');
  setTimeout(() => ctx.notify(methods.agent.session.cancel, { sessionId }), 500);
  const { stopReason } = await third;
  const status = await end;
  await prompt('/kill 3');
  console.log(`${ticks} ticks, ${status}, third turn ${stopReason}`);
});
agent.stdin.end();
