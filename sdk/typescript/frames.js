// Frames: how messages of many streams share one pipe. Bytes in, messages out; no I/O. See docs/formats/relay.md.

export const MARKER = Buffer.from('\0outlast-relay\n');
export const MAX_BODY = 64 << 10;
export const MAX_MESSAGE = 64 << 20;
const MAX_BEFORE_MARKER = 64 << 10;
const HEADER = 10;
const MORE = 1;
export const KINDS = ['hello', 'request', 'subscribe', 'answer', 'failure', 'news', 'began', 'credit', 'cancel', 'ping', 'pong', 'also'];

/** A message as frames, one after the other. */
export function encode(stream, kind, body) {
  const number = KINDS.indexOf(kind);
  const parts = [];
  let at = 0;
  do {
    const piece = body.subarray(at, at + MAX_BODY);
    at += piece.length;
    const header = Buffer.alloc(HEADER);
    header.writeUInt32BE(piece.length, 0);
    header.writeUInt32BE(stream, 4);
    header[8] = number;
    header[9] = at < body.length ? MORE : 0;
    parts.push(header, piece);
  } while (at < body.length);
  return Buffer.concat(parts);
}

/** Finds the messages in a stream of bytes. What comes before the marker was printed by somebody else. */
export class Decoder {
  #buffer = Buffer.alloc(0);
  #awaitsMarker;
  #parts = new Map();

  constructor(awaitsMarker = true) {
    this.#awaitsMarker = awaitsMarker;
  }

  /** The last line of what was printed where a marker should have been; empty once it was there. */
  beforeMarker() {
    if (!this.#awaitsMarker) return '';
    const lines = this.#buffer.toString().split('\n').filter((line) => line.trim());
    return (lines.at(-1) ?? '').replace(/\p{Cc}/gu, '').slice(0, 200);
  }

  /** Takes bytes in, and gives out the messages that are whole. */
  *push(data) {
    this.#buffer = this.#buffer.length ? Buffer.concat([this.#buffer, data]) : data;
    if (this.#awaitsMarker) {
      const at = this.#buffer.indexOf(MARKER);
      if (at < 0) {
        if (this.#buffer.length > MAX_BEFORE_MARKER) throw new Error(`no relay answered, but: ${this.beforeMarker()}`);
        return;
      }
      this.#awaitsMarker = false;
      this.#buffer = this.#buffer.subarray(at + MARKER.length);
    }
    while (this.#buffer.length >= HEADER) {
      const length = this.#buffer.readUInt32BE(0);
      if (length > MAX_BODY) throw new Error(`a frame of ${length} bytes is too long`);
      if (this.#buffer.length < HEADER + length) return;
      const stream = this.#buffer.readUInt32BE(4);
      const [number, flags] = [this.#buffer[8], this.#buffer[9]];
      const body = this.#buffer.subarray(HEADER, HEADER + length);
      this.#buffer = this.#buffer.subarray(HEADER + length);
      const message = this.#assemble(stream, number, flags, body);
      if (message) yield message;
    }
  }

  #assemble(stream, number, flags, body) {
    // What a newer side may have invented is skipped.
    if (number >= KINDS.length) return undefined;
    const key = `${stream}/${number}`;
    const before = this.#parts.get(key);
    if (!(flags & MORE) && !before) return { stream, kind: KINDS[number], body };
    const parts = before ?? { pieces: [], length: 0 };
    parts.pieces.push(Buffer.from(body));
    parts.length += body.length;
    if (parts.length > MAX_MESSAGE) throw new Error(`a message of ${parts.length} bytes is too long`);
    if (flags & MORE) {
      this.#parts.set(key, parts);
      return undefined;
    }
    this.#parts.delete(key);
    return { stream, kind: KINDS[number], body: Buffer.concat(parts.pieces) };
  }
}
