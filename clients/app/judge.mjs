// The page ui://outlast/job as a client shows it, in a real browser.
//
//   judge.mjs TOOLS PROGRAM PROFILE      TOOLS holds node_modules, as package.json says
//
// Prints "ok" and how many checks there were; the first that fails is an error.
import { createRequire } from "node:module";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [tools, program, profile] = process.argv.slice(2);
const require = createRequire(join(tools, "package.json"));
const load = async (name) => import(pathToFileURL(require.resolve(name)));
const { build } = require("esbuild");
const { chromium } = require("playwright-core");
const { Client } = await load("@modelcontextprotocol/client");
const { StdioClientTransport } = await load("@modelcontextprotocol/client/stdio");

const MIME = "text/html;profile=mcp-app";
const RUN = { plain: "run_shell_command", codex: "exec_command", claude: "Bash", gemini: "run_shell_command" }[profile];
const COMMAND = profile === "codex" ? "cmd" : "command";
let checks = 0;
function check(what, holds, seen) {
  checks++;
  if (!holds) throw new Error(`${what}: ${JSON.stringify(seen)}`);
}

async function connect(capabilities) {
  const client = new Client({ name: "a chat", version: "1" }, { capabilities });
  await client.connect(new StdioClientTransport({ command: program, args: ["mcp", "--profile", profile], env: process.env }));
  return client;
}

// Who does not show apps is told of none.
const plain = await connect({});
const told = (await plain.listTools()).tools;
check("no tool of the page's", !told.some((tool) => tool.name === "job_view" || tool._meta?.ui), told);
check("no page", !(await plain.listResources()).resources.some((one) => one.uri.startsWith("ui:")));
await plain.close();

const client = await connect({ extensions: { "io.modelcontextprotocol/ui": { mimeTypes: [MIME] } } });
const listed = (await client.listTools()).tools;
const run = listed.find((tool) => tool.name === RUN);
check("the page is beside the tool that starts jobs", run?._meta?.ui?.resourceUri === "ui://outlast/job", run);
const own = listed.find((tool) => tool.name === "job_view");
check("the page's own tool is not for the model", own?._meta?.ui?.visibility?.join() === "app", own);
check("the page is listed", (await client.listResources()).resources.some((one) => one.uri === "ui://outlast/job" && one.mimeType === MIME));
const [page] = (await client.readResource({ uri: "ui://outlast/job" })).contents;
check("the page is HTML of its kind", page.mimeType === MIME && page.text.startsWith("<!doctype html>"), page);

const bundled = await build({
  entryPoints: [new URL("host.mjs", import.meta.url).pathname],
  nodePaths: [join(tools, "node_modules")], bundle: true, write: false, format: "iife", logLevel: "error",
});
const profileFolder = mkdtempSync(join(tmpdir(), "chromium-"));
const args = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const browser = await chromium.launchPersistentContext(profileFolder, { executablePath: "/usr/bin/chromium", args });
const complaints = [];
try {
  const chat = await browser.newPage();
  chat.setDefaultTimeout(60000);
  chat.on("pageerror", (error) => complaints.push(String(error)));
  chat.on("console", (message) => { if (message.type() === "error") complaints.push(message.text()); });
  let calls = 0;
  await chat.exposeFunction("callTool", (params) => { calls++; return client.callTool(params); });
  await chat.setContent("<!doctype html><title>a chat</title><body></body>");
  await chat.addScriptTag({ content: bundled.outputFiles[0].text });

  const show = async (command, theme) => {
    await chat.evaluate(() => document.getElementById("app")?.remove());
    const input = { [COMMAND]: command, ...(profile === "codex" ? { yield_time_ms: 2000 } : profile === "claude" ? { run_in_background: true } : { ai_callback_delay: 2 }) };
    const result = await client.callTool({ name: RUN, arguments: input });
    const version = await chat.evaluate((shown) => window.showApp(shown), { html: page.text, input, result, theme });
    check("the app says who it is", version?.name === "outlast", version);
    return chat.frameLocator("#app");
  };
  const has = async (frame, where, text) => {
    await frame.locator(where).filter({ hasText: text }).waitFor();
    checks++;
  };

  // A question, answered by a button; colours; output that looks like markup is text.
  const danger = "<img src=x onerror=alert(1)>";
  const asks = `printf '\\033[31mred\\033[0m ${danger}\\n'; read -p 'Go on? [y/n] ' a; echo you said $a; cat`;
  const frame = await show(asks, "dark");
  await has(frame, "#screen", danger);
  check("no markup came of it", (await frame.locator("#screen img").count()) === 0);
  const red = await frame.locator("#screen span").filter({ hasText: /^red$/ }).evaluate((node) => getComputedStyle(node).color);
  check("red is red", red === "rgb(224, 108, 117)", red);
  await has(frame, "#question", "Go on? [y/n]");
  await frame.getByRole("button", { name: "y", exact: true }).click();
  await has(frame, "#screen", "you said y");
  await frame.locator("#question").waitFor({ state: "attached" });

  // A line, also with the keyboard alone; wide characters.
  await frame.getByLabel("A line to send").fill("日本語 & <b>");
  await frame.getByLabel("A line to send").press("Enter");
  await has(frame, "#screen", /日本語 & <b>[\s\S]*日本語 & <b>/);

  // What comes by itself is seen without a click.
  await frame.getByRole("button", { name: "Ctrl-C" }).click();
  await has(frame, "#status", "SIGINT");
  await frame.locator("#keys").waitFor({ state: "hidden" });
  const after = calls;

  // It ends by itself, and then nothing more is asked.
  const ended = await show("echo begun; sleep 2; echo done; exit 3", "light");
  await has(ended, "#screen", "begun");
  await has(ended, "#status", "exit code 3");
  await has(ended, "#screen", "done");
  const then = calls;
  check("it looked more than once", then > after, { then, after });
  await chat.evaluate(() => new Promise((resolve) => setTimeout(resolve, 1500)));
  check("after the end nothing is asked", calls === then, { calls, then });

  // A password is not typed in a chat.
  const secret = await show("read -s -p 'Password: ' p; echo; echo got it; sleep 100", "dark");
  await has(secret, "#question", "outlast secret");
  await secret.locator("#line").waitFor({ state: "hidden" });
  await secret.getByRole("button", { name: "Enter" }).click();
  await has(secret, "#trouble", "password");
  check("a frame that goes is let go", JSON.stringify(await chat.evaluate(() => window.tearDown())) === "{}");
  check("the bridge has no complaint", (await chat.evaluate(() => window.appTrouble)).length === 0, await chat.evaluate(() => window.appTrouble));
  check("the browser has no complaint", complaints.length === 0, complaints);
} finally {
  await browser.close();
  rmSync(profileFolder, { recursive: true, force: true });
  await client.close();
}
console.log(`ok ${checks}`);
