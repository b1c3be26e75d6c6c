// The relay's conformance vectors.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Decoder, encode } from '../frames.js';

const vectors = (name) => JSON.parse(readFileSync(new URL(`../../../crates/remote/tests/vectors/${name}`, import.meta.url)));
const text = ({ body, body_repeat: repeat }) => (repeat ? repeat.before + repeat.unit.repeat(repeat.times) + repeat.after : body);
const shown = ({ stream, kind, body }) => ({ stream, kind, body: body.toString() });
const bytes = (one) => (one.hex === undefined ? Buffer.from(one.repeat.hex.repeat(one.repeat.times), 'hex') : Buffer.from(one.hex, 'hex'));

function decoded(decoder, data, piece) {
  const found = [];
  for (let at = 0; at < data.length; at += piece) found.push(...[...decoder.push(data.subarray(at, at + piece))].map(shown));
  return found;
}

test('messages encode to the bytes of the vectors and back', () => {
  for (const one of vectors('frames.json').encode) {
    const wanted = { stream: one.stream, kind: one.kind, body: text(one) };
    const data = encode(one.stream, one.kind, Buffer.from(wanted.body));
    if (one.hex !== undefined) assert.equal(data.toString('hex'), one.hex);
    for (const piece of data.length < 1 << 16 ? [1, 7, data.length] : [65536, data.length]) {
      assert.deepEqual(decoded(new Decoder(false), data, piece), [wanted]);
    }
  }
});

test('what must be skipped is skipped, and what cannot be read is refused', () => {
  const { skip, refuse } = vectors('frames.json');
  for (const one of skip) {
    const wanted = one.messages.map((each) => ({ stream: each.stream, kind: each.kind, body: text(each) }));
    for (const piece of [1, 1000]) assert.deepEqual(decoded(new Decoder(one.from === 'relay'), bytes(one), piece), wanted, one.what);
  }
  for (const one of refuse) assert.throws(() => decoded(new Decoder(one.from === 'relay'), bytes(one), 1000), one.what);
});
