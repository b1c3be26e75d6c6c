// What the tools cost a model in every conversation: names, descriptions and parameters, in tokens of o200k_base.
//
//   tokens.mjs PROGRAM [PROFILE]      needs the package gpt-tokenizer in the folder CLIENTS_NODE

import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';

const [program, profile = 'plain'] = process.argv.slice(2);
const { encode } = createRequire(process.env.CLIENTS_NODE + '/package.json')('gpt-tokenizer/encoding/o200k_base');
const say = (message) => JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n';
const info = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'tokens', version: '1' } };
const input = say({ id: 1, method: 'initialize', params: info }) + say({ method: 'notifications/initialized' }) + say({ id: 2, method: 'tools/list' });
const said = spawnSync(program, ['mcp', '--profile', profile], { input, encoding: 'utf8' }).stdout;
const listed = said.trim().split('\n').map((line) => JSON.parse(line)).find((message) => message.id === 2).result;
const { tools } = listed;
const seen = tools.map(({ name, description, inputSchema }) => ({ name, description, parameters: inputSchema }));
console.log(`${tools.length} tools: ${encode(JSON.stringify(seen)).length} tokens, ${JSON.stringify(listed).length} bytes`);
