// The TypeScript SDK as an editor in front of the sidecar: one prompt, then it only listens. Allows what it is asked.
//
//   editor.mjs MODE AGENT...      MODE: a session mode to set, or - for none
//
// Ends when the agent has been woken and has answered, and nothing more came for a while. With EDITOR_KILLS, the name of a file
// with a pid, it kills that with SIGKILL after the turn instead, and prints the session; EDITOR_LOADS loads such a session and
// prompts nothing; with EDITOR_LOOPS it goes on until it is told that the agent is not woken any more. With EDITOR_TICKS it prompts
// again after the third and after the tenth line of a stream, and ends after the stream's call has ended.

import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Readable, Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';

const require = createRequire(process.env.CLIENTS_NODE + '/package.json');
const acp = await import(pathToFileURL(require.resolve('@agentclientprotocol/sdk')).href);
const [mode, program, ...args] = process.argv.slice(2);
const agent = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
const SETTLED = 4000;

let injected = false;
let settled;
let timer;
let ticks = 0;
let streaming;
// A slow agent's first turn may end after the third tick: what is due then is said after it.
let due = 0;
let prompt = () => { due += 1; };
const end = new Promise((resolve) => { settled = resolve; });
const app = acp.client({ name: 'editor' })
  .onNotification(acp.methods.client.session.update, ({ params: { update } }) => {
    if (process.env.EDITOR_TICKS && update.sessionUpdate === 'tool_call_update') {
      if (update._meta?.['gemini-cli/stream_output']) {
        streaming = update.toolCallId;
        ticks += 1;
        if (ticks === 3 || ticks === 10) prompt();
      } else if (update.toolCallId === streaming && update.status === 'completed') {
        timer = setTimeout(settled, SETTLED);
      }
      return;
    }
    if (process.env.EDITOR_TICKS) return;
    if (update.sessionUpdate === 'user_message_chunk' && update._meta?.['outlast.dev/injected']) injected = true;
    if (!injected || update.sessionUpdate !== 'agent_message_chunk') return;
    if (process.env.EDITOR_LOOPS && !update.content.text.includes('does not wake the agent any more')) return;
    clearTimeout(timer);
    timer = setTimeout(settled, SETTLED);
  })
  .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
    const { optionId } = params.options.find((option) => option.kind === 'allow_once') ?? params.options[0];
    return { outcome: { outcome: 'selected', optionId } };
  });

await app.connectWith(stream, async (ctx) => {
  const { methods } = acp;
  await ctx.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
  const folder = { cwd: process.cwd(), mcpServers: [] };
  const known = process.env.EDITOR_LOADS;
  if (known) await ctx.request(methods.agent.session.load, { sessionId: known, ...folder });
  const sessionId = known ?? (await ctx.request(methods.agent.session.new, folder)).sessionId;
  if (mode !== '-') await ctx.request(methods.agent.session.setMode, { sessionId, modeId: mode });
  if (!known) {
    const { stopReason } = await ctx.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text: 'go' }] });
    console.log(`the turn ended: ${stopReason}`);
  }
  if (process.env.EDITOR_KILLS) {
    process.kill(Number(readFileSync(process.env.EDITOR_KILLS, 'utf8')), 'SIGKILL');
    console.log(`session ${sessionId}`);
    process.exit(0);
  }
  prompt = () => {
    const text = 'Tell me a haiku';
    ctx.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text }] });
  };
  for (; due > 0; due -= 1) prompt();
  await end;
});
agent.stdin.end();
