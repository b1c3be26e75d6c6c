// Draws rows of styled text: a screen in small, and the open terminal where there is no xterm.js.
import { el } from './ui.js';

const BASE = ['#2e3a40', '#e5726b', '#7fc48a', '#e2b860', '#6ea8e0', '#c792d8', '#5fc4c0', '#d7dfe1', '#66757b', '#f28b82', '#9bd8a4', '#f0cb80', '#93c1ee', '#d9aee6', '#86dbd7', '#f4f8f8'];

function indexed(n) {
  if (n < 16) return BASE[n];
  if (n >= 232) { const v = 8 + (n - 232) * 10; return `rgb(${v},${v},${v})`; }
  const step = (v) => (v ? v * 40 + 55 : 0);
  n -= 16;
  return `rgb(${step(Math.floor(n / 36))},${step(Math.floor(n / 6) % 6)},${step(n % 6)})`;
}

const PLAIN = { fg: null, bg: null, flags: '' };

function apply(style, codes) {
  const next = { ...style };
  const flag = (letter) => { if (!next.flags.includes(letter)) next.flags += letter; };
  for (let i = 0; i < codes.length; i += 1) {
    const code = codes[i];
    if (code === 0) Object.assign(next, PLAIN);
    else if (code === 1) flag('b');
    else if (code === 2) flag('d');
    else if (code === 3) flag('i');
    else if (code === 4) flag('u');
    else if (code === 7) flag('r');
    else if (code === 8) flag('h');
    else if (code === 9) flag('s');
    else if (code >= 30 && code <= 37) next.fg = indexed(code - 30);
    else if (code >= 90 && code <= 97) next.fg = indexed(code - 82);
    else if (code >= 40 && code <= 47) next.bg = indexed(code - 40);
    else if (code >= 100 && code <= 107) next.bg = indexed(code - 92);
    else if (code === 39) next.fg = null;
    else if (code === 49) next.bg = null;
    else if (code === 38 || code === 48) {
      const to = code === 38 ? 'fg' : 'bg';
      if (codes[i + 1] === 5) { next[to] = indexed(codes[i + 2] ?? 0); i += 2; }
      else if (codes[i + 1] === 2) { next[to] = `rgb(${codes[i + 2] ?? 0},${codes[i + 3] ?? 0},${codes[i + 4] ?? 0})`; i += 4; }
    }
  }
  return next;
}

function span(text, style) {
  if (style.fg === null && style.bg === null && style.flags === '') return document.createTextNode(text);
  const node = el('span', { class: [...style.flags].filter((letter) => letter !== 'r').join(' ') || null });
  node.textContent = text;
  let [fg, bg] = [style.fg, style.bg];
  if (style.flags.includes('r')) [fg, bg] = [bg ?? 'var(--term-bg)', fg ?? 'var(--term-fg)'];
  if (fg) node.style.color = fg;
  if (bg) node.style.background = bg;
  return node;
}

export const plain = (row) => row.replace(/\x1b\[[0-9;:]*m/g, '');

export function drawRow(node, row) {
  const parts = [];
  let style = PLAIN;
  for (const part of row.split(/(\x1b\[[0-9;:]*m)/)) {
    if (part.startsWith('\x1b[')) style = apply(style, part.slice(2, -1).split(/[;:]/).map(Number));
    else if (part) parts.push(span(part, style));
  }
  node.replaceChildren(...parts);
}

// A screen of rows in an element, at a size that fits.
export class RowScreen {
  constructor(box, { fit = 'width', max = 15, trim = fit === 'tile' } = {}) {
    Object.assign(this, { box, fit, max, trims: trim, text: [], size: { cols: 80, rows: 24 } });
    this.rows = el('div', { class: 'rows' });
    box.append(this.rows);
    // The size comes from here alone: to ask for it after each row would lay the page out each time.
    new ResizeObserver(([{ contentRect }]) => { this.inner = contentRect; this.scale(); }).observe(box);
  }

  scale() {
    if (!this.inner) return;
    const { width, height } = this.inner;
    // A tile shows what is there, not the blanks beside it, and stays legible: what does not fit is cut off.
    const used = this.fit === 'tile' ? Math.min(this.size.cols, Math.max(40, ...this.text.map((row) => plain(row).trimEnd().length))) : this.size.cols;
    let fits = width / (used * 0.605);
    // The open terminal shows all of its rows where they are legible that way.
    if (this.fit === 'screen') {
      fits = Math.min(fits, Math.max(9, height / (this.size.rows * 1.25)));
    }
    const size = Math.min(this.max, Math.max(this.fit === 'tile' ? 8 : width < 500 ? 9 : 7, fits));
    const font = `${size.toFixed(2)}px`;
    if (font !== this.font) { this.font = font; this.rows.style.fontSize = font; }
  }

  // What the server says has changed.
  change({ full, count, rows, size, cursor, alternate }) {
    const sized = size && (size.cols !== this.size.cols || size.rows !== this.size.rows);
    this.size = size ?? this.size;
    if (full) { this.rows.replaceChildren(); this.text = []; }
    while (this.rows.childElementCount < count) { this.rows.append(el('div')); this.text.push(''); }
    while (this.rows.childElementCount > count) { this.rows.lastChild.remove(); this.text.pop(); }
    for (const [index, row] of rows) { this.text[index] = row; drawRow(this.rows.children[index], row); }
    if (sized || full) this.scale();
    this.showCursor(cursor);
    if (this.trims) this.trim();
    if (this.fit === 'tile') {
      // Of lines the last are seen, of a full-screen program the first.
      this.box.classList.toggle('from-top', Boolean(alternate));
      this.scale();
    }
  }

  // Empty rows at the end say nothing.
  trim() {
    let last = this.text.length - 1;
    while (last > 0 && plain(this.text[last]).trim() === '') last -= 1;
    [...this.rows.children].forEach((row, index) => { if (row.hidden !== index > last) row.hidden = index > last; });
  }

  showCursor(cursor) {
    this.cursor?.remove();
    this.cursor = null;
    if (!cursor?.visible || this.fit === 'tile' || !this.rows.children[cursor.row]) return;
    this.cursor = el('span', { class: 'cursor', 'aria-hidden': 'true' }, ' ');
    Object.assign(this.cursor.style, { position: 'absolute', left: `calc(${cursor.col}ch)`, width: '1ch' });
    const row = this.rows.children[cursor.row];
    row.style.position = 'relative';
    row.prepend(this.cursor);
  }

  show(shot) {
    this.change({ full: true, count: shot.rows.length, rows: shot.rows.map((row, index) => [index, row]), size: shot.size, cursor: shot.cursor });
  }

  plainRows() {
    return this.text.map((row) => plain(row).trimEnd());
  }
}
