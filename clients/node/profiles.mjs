// Every tool of a profile, called by the TypeScript SDK, which holds each answer against the tool's own output schema; and
// output that does not fit into one answer, read to its end by what the hints say and nothing else.
//
//   CLIENTS_NODE=FOLDER node profiles.mjs SERVER PROFILE      FOLDER: where @modelcontextprotocol/sdk is installed
import { createRequire } from "node:module";
import assert from "node:assert/strict";

const require = createRequire(process.env.CLIENTS_NODE + "/");
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");

const [server, profile] = process.argv.slice(2);
const client = new Client({ name: "profiles", version: "1" });
await client.connect(new StdioClientTransport({ command: server, args: ["mcp", "--profile", profile], env: process.env }));
const tools = (await client.listTools()).tools;
const names = tools.map((tool) => tool.name);
const parametersOf = (name) => Object.keys(tools.find((tool) => tool.name === name).inputSchema.properties);

const called = new Set();
async function call(name, args) {
  called.add(name);
  const result = await client.callTool({ name, arguments: args });
  const text = result.content.map((block) => block.text).join("");
  assert.ok(!result.isError, `${name}: ${text}`);
  namesOnlyWhatThereIs(text);
  return { text, facts: result.structuredContent };
}

// Names that some profile has and this one does not are in none of its words.
const everywhere = ["run_shell_command", "send_input", "read_shell", "read_output", "wait_for", "jobs", "kill", "write_to_shell",
  "read_background_output", "list_background_processes", "exec_command", "write_stdin", "Bash", "BashOutput", "KillShell"];
function namesOnlyWhatThereIs(text) {
  for (const name of everywhere.filter((name) => !names.includes(name) && name !== "kill")) {
    assert.ok(!new RegExp(`\\b${name}\\b`).test(text), `${profile} has no ${name}: ${text.slice(0, 2000)}`);
  }
  assert.ok(names.includes("kill") || !/\bkill(\(| with)/.test(text), text.slice(0, 2000));
  for (const word of ["--cwd", "--pipe", "outlast read", "outlast kill", "outlast jobs", "outlast run"]) {
    assert.ok(!text.includes(word), `${word}: ${text.slice(0, 2000)}`);
  }
  for (const [, name, args] of text.matchAll(/\b(\w+)\((\w+=[^()\n]*)\)/g)) {
    if (!names.includes(name)) continue;
    for (const [, parameter] of args.matchAll(/(\w+)=/g)) {
      assert.ok(parametersOf(name).includes(parameter), `${name} has no ${parameter}: ${text.slice(0, 2000)}`);
    }
  }
}

namesOnlyWhatThereIs(client.getInstructions());
for (const tool of tools) namesOnlyWhatThereIs(tool.description);

const run = { codex: ["exec_command", "cmd"], claude: ["Bash", "command"] }[profile] ?? ["run_shell_command", "command"];
const started = (command) => call(run[0], { [run[1]]: command });

// What does not fit is read by the call that stands in its place, however often.
// Our words come first; after the first blank line, all is the job's.
const gap = /^\d+ bytes left out \(…\): (\w+)\(([^)]*)\)$/m;
let calls = 0;
async function whole(text) {
  const end = text.indexOf("\n\n");
  const [ours, output] = [text.slice(0, end), text.slice(end + 2)];
  const hint = ours.match(gap);
  if (!hint) return output;
  calls += 1;
  assert.ok(calls < 200, "it does not come to an end");
  const args = JSON.parse(`{${hint[2].replace(/(\w+)=/g, '"$1": ')}}`);
  const read = await call(hint[1], args);
  const [before, after] = output.split(/^…$/m);
  return `${before}\n${await whole(read.text)}\n${after}`;
}
const all = await whole((await started("seq 1 100000")).text);
const lines = all.split("\n").filter((line) => line !== "");
const wanted = Array.from({ length: 100000 }, (_, n) => String(n + 1));
const wrong = lines.findIndex((line, n) => line !== wanted[n]);
assert.equal(wrong, -1, `line ${wrong}: ${lines.slice(wrong - 2, wrong + 3)}, in ${calls} calls`);
assert.equal(lines.length, wanted.length);

// Every other tool, on a job that asks and on one that can't start.
const asks = await started('printf "name? "; read x; echo "hello $x"; read y; read z; read w');
const handle = "2";
const pid = asks.facts?.pid;
const inputs = {
  send_input: { handle, input: "one" }, write_stdin: { session_id: 2, chars: "one\n" },
  write_to_shell: { pid, input: "two", special_keys: ["Enter"] }, read_shell: { handle },
  read_output: { handle, offset: 0 }, BashOutput: { bash_id: handle, offset: 0 }, read_background_output: { pid },
  wait_for: { handle, timeout: 1 }, jobs: { all: true }, list_background_processes: {},
};
for (const name of ["send_input", "write_stdin", ...names].filter((name) => names.includes(name) && inputs[name])) {
  await call(name, inputs[name]);
}
const lost = await client.callTool({ name: names.includes("kill") ? "kill" : "KillShell", arguments: { handle: "99", shell_id: "99" } });
assert.ok(lost.isError);
namesOnlyWhatThereIs(lost.content[0].text);
await started("sleep 1000 & echo left");
if (names.includes("kill")) await call("kill", { handle });
else await call("KillShell", { shell_id: handle });
await call(names.includes("kill") ? "kill" : "KillShell", { handle: "3", shell_id: "3" });
assert.deepEqual([...called].sort(), [...names].sort(), "every tool was called");
await client.close();
console.log(`ok ${profile}: ${names.length} tools, ${calls} calls to read it all`);
