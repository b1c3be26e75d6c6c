// What xterm.js shows of the bytes on standard input, all that it remembers, as JSON:
// node screen.mjs TOOLS COLUMNS ROWS [OFFSET COLUMNS ROWS]... < bytes. TOOLS is the folder with node_modules; from each
// offset on, the window has another size.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const [tools, cols, rows, ...resizes] = process.argv.slice(2);
const { Terminal } = createRequire(join(tools, "package.json"))("@xterm/headless");
const terminal = new Terminal({
  cols: Number(cols),
  rows: Number(rows),
  scrollback: 100_000,
  allowProposedApi: true,
});
const bytes = readFileSync(0);
const write = (part) => new Promise((done) => terminal.write(part, done));
let at = 0;
for (let next = 0; next < resizes.length; next += 3) {
  const [offset, columns, rows] = resizes.slice(next, next + 3).map(Number);
  await write(bytes.subarray(at, offset));
  terminal.resize(columns, rows);
  at = offset;
}
terminal.write(bytes.subarray(at), () => {
  const buffer = terminal.buffer.active;
  const lines = [];
  for (let index = 0; index < buffer.length; index += 1) {
    const line = buffer.getLine(index);
    const text = line.translateToString(true);
    // A row that goes on from the one above is part of the same line.
    if (line.isWrapped) lines[lines.length - 1] += text;
    else lines.push(text);
  }
  process.stdout.write(JSON.stringify({ lines, alternate: buffer.type === "alternate" }));
});
