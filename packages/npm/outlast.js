#!/usr/bin/env node
// Starts the program that belongs to this machine. It is in a package of its own, which npm has chosen by `os` and `cpu`; nothing is
// downloaded and nothing runs at install time.
'use strict';
const { spawn } = require('node:child_process');

const name = `@outlast/${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/outlast`);
} catch {
  const why = process.platform === 'linux' ? 'It is an optional dependency: install again without --omit=optional.' : 'There is none for this system: Outlast runs on Linux, and in WSL.';
  console.error(`outlast: the package ${name} is not here. ${why}`);
  process.exit(1);
}
const args = process.argv.slice(2);
if (typeof process.execve === 'function') {
  // Nothing of Node is left then, and signals reach the program itself.
  process.removeAllListeners('warning');
  process.on('warning', () => {});
  try {
    process.execve(program, [program, ...args], process.env);
  } catch {
    // Where it is not supported, a child does the same.
  }
}
const child = spawn(program, args, { stdio: 'inherit' });
child.on('error', (error) => {
  console.error(`outlast: ${program}: ${error.message}`);
  process.exit(1);
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH', 'SIGCONT']) {
  process.on(signal, () => child.kill(signal));
}
child.on('exit', (code, signal) => {
  if (signal === null) process.exit(code);
  // Ends as the program did.
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
