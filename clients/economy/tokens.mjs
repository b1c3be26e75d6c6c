// Counts tokens of o200k_base: a JSON list of texts on standard input, a JSON list of numbers on standard output.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';

const { encode } = createRequire(process.argv[2] + '/package.json')('gpt-tokenizer/encoding/o200k_base');
console.log(JSON.stringify(JSON.parse(readFileSync(0, 'utf8')).map((text) => encode(text).length)));
