// The page of a chat: it shows an app in a sandboxed frame, and speaks to it with the bridge of the extension's own
// package. What the app asks of its server goes to whoever made this page.
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

window.showApp = async ({ html, input, result, theme }) => {
  const frame = document.createElement("iframe");
  frame.id = "app";
  frame.sandbox.add("allow-scripts");
  frame.style.cssText = "width: 100%; height: 200px; border: 1px solid";
  document.body.append(frame);
  const info = { name: "a chat", version: "1" };
  const can = { serverTools: {}, serverResources: {}, logging: {} };
  const bridge = new AppBridge(null, info, can, { hostContext: { theme } });
  const wrong = [];
  bridge.onerror = (error) => wrong.push(String(error));
  bridge.oncalltool = (params) => window.callTool(params);
  bridge.onsizechange = ({ height }) => { if (height) frame.style.height = `${height}px`; };
  const ready = new Promise((resolve) => { bridge.oninitialized = resolve; });
  // The policy that hosts set for an app that asks for nothing from anywhere.
  const policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'";
  const meta = `<meta http-equiv="Content-Security-Policy" content="${policy}">`;
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  frame.srcdoc = html.replace("<meta charset", `${meta}<meta charset`);
  await ready;
  bridge.sendToolInput({ arguments: input });
  bridge.sendToolResult(result);
  window.appTrouble = wrong;
  window.tearDown = () => bridge.teardownResource({});
  return bridge.getAppVersion();
};
