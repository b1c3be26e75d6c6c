// The open terminal: xterm.js where the server has it, otherwise rows.
import { RowScreen } from './rows.js';
import { confirm, el } from './ui.js';

const DARK = {
  background: '#00000000', foreground: '#d7dfe1', cursor: '#5eead4', cursorAccent: '#0a0e10', selectionBackground: '#2f5a57',
  black: '#2e3a40', red: '#e5726b', green: '#7fc48a', yellow: '#e2b860', blue: '#6ea8e0', magenta: '#c792d8', cyan: '#5fc4c0', white: '#d7dfe1',
  brightBlack: '#66757b', brightRed: '#f28b82', brightGreen: '#9bd8a4', brightYellow: '#f0cb80', brightBlue: '#93c1ee', brightMagenta: '#d9aee6', brightCyan: '#86dbd7', brightWhite: '#f4f8f8',
};
const FONT = 'ui-monospace, "SF Mono", "Cascadia Mono", "JetBrains Mono", Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace';
const [SNAPSHOT, BYTES, BEFORE] = [1, 2, 3];
const LINES = 5000;

// A paste of several lines is shown before it is sent.
export async function mayPaste(text) {
  const lines = text.replace(/\r?\n$/, '').split(/\r?\n/).length;
  if (!/[\r\n]/.test(text)) return true;
  return confirm({ title: `Paste ${lines} ${lines === 1 ? 'line' : 'lines'}?`, text: 'Each line end may run what stands before it.', body: text, yes: 'Paste' });
}

class Xterm {
  static async make(box, handlers) {
    const link = el('link', { rel: 'stylesheet', href: '/xterm/xterm.css' });
    const styled = new Promise((resolve) => { link.addEventListener('load', resolve); link.addEventListener('error', resolve); });
    document.head.append(link);
    const [{ Terminal }, { FitAddon }, { SearchAddon }, { UnicodeGraphemesAddon }, { WebLinksAddon }] = await Promise.all([
      import('/xterm/xterm.mjs'), import('/xterm/addon-fit.mjs'), import('/xterm/addon-search.mjs'), import('/xterm/addon-unicode-graphemes.mjs'), import('/xterm/addon-web-links.mjs'), styled,
    ]);
    const term = new Terminal({ theme: DARK, fontFamily: FONT, fontSize: 14, scrollback: LINES, allowProposedApi: true, allowTransparency: true, disableStdin: true, cursorInactiveStyle: 'outline', macOptionIsMeta: true });
    const view = Object.assign(new Xterm(), { box, term, fit: new FitAddon(), search: new SearchAddon(), handlers, mine: false });
    term.loadAddon(view.fit);
    term.loadAddon(view.search);
    term.loadAddon(new UnicodeGraphemesAddon());
    term.loadAddon(new WebLinksAddon((event, uri) => { if (/^https?:/.test(uri)) window.open(uri, '_blank', 'noopener,noreferrer'); }));
    term.open(box);
    term.attachCustomKeyEventHandler((event) => {
      if (!(event.ctrlKey && event.key === ']')) return true;
      if (event.type === 'keydown') handlers.leave();
      return false;
    });
    term.onData((data) => { if (view.mine) handlers.keys(data); });
    term.onBinary((data) => { if (view.mine) handlers.keys(data); });
    // What the program asks its terminal is answered by the keeper: a second answer would be typed into it.
    for (const [final, prefix] of [['c', ''], ['c', '>'], ['c', '='], ['n', ''], ['n', '?'], ['q', '>']]) {
      term.parser.registerCsiHandler({ final, prefix: prefix || undefined }, () => true);
    }
    term.parser.registerCsiHandler({ final: 'p', intermediates: '$' }, () => true);
    term.parser.registerCsiHandler({ final: 'p', prefix: '?', intermediates: '$' }, () => true);
    for (const code of [4, 10, 11, 12]) term.parser.registerOscHandler(code, (data) => data.includes('?'));
    term.parser.registerOscHandler(52, () => true);
    term.parser.registerDcsHandler({ final: 'q', intermediates: '$' }, () => true);
    term.parser.registerDcsHandler({ final: 'q', intermediates: '+' }, () => true);
    box.addEventListener('paste', async (event) => {
      event.preventDefault();
      event.stopPropagation();
      const text = event.clipboardData.getData('text');
      if (!view.mine) return handlers.untaken();
      if (await mayPaste(text)) term.paste(text);
      term.focus();
    }, true);
    box.addEventListener('keydown', (event) => { if (!view.mine && event.key.length === 1 && !event.ctrlKey && !event.metaKey) handlers.untaken(); }, true);
    new ResizeObserver(() => view.resized()).observe(box);
    return view;
  }

  usesBytes() { return true; }

  // The size that fits, at the font of a person who types.
  ownSize() {
    this.term.options.fontSize = 14;
    const fits = this.fit.proposeDimensions();
    return fits ? { cols: Math.max(20, fits.cols), rows: Math.max(5, fits.rows) } : { cols: 80, rows: 24 };
  }

  setMine(mine) {
    this.mine = mine;
    this.term.options.disableStdin = !mine;
    this.term.options.cursorBlink = mine;
    if (mine) this.term.focus();
  }

  setSize(size) {
    if (!size) return;
    this.term.resize(size.cols, size.rows);
    this.scale();
  }

  // Somebody else's size is shown at the font at which it fits.
  scale() {
    if (this.mine) return;
    const style = getComputedStyle(this.box);
    const width = this.box.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    const height = this.box.clientHeight - parseFloat(style.paddingTop) - parseFloat(style.paddingBottom);
    const fits = Math.min(width / (this.term.cols * 0.605), height / (this.term.rows * 1.2));
    const least = width < 500 ? 9 : 7;
    this.term.options.fontSize = Math.max(least, Math.min(15, Math.floor(fits * 2) / 2));
  }

  resized() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => (this.mine ? this.handlers.resized() : this.scale()), 120);
  }

  frame({ kind, bytes }) {
    // What has left the screen comes after the screen itself, which is then drawn once more.
    if (kind === BEFORE) {
      this.whole = true;
      if (bytes.length) { this.term.reset(); this.term.write(bytes); this.before = true; }
    }
    if (kind === SNAPSHOT) {
      if (this.before) this.term.write('\r\n'.repeat(this.term.rows));
      else this.term.write('\x1b[!p');
      this.before = false;
      this.term.write('\x1b[?2026h');
      this.term.write(bytes);
      this.term.write('\x1b[?2026l');
    }
    if (kind === BYTES) this.term.write(bytes);
  }

  find(text, back) {
    if (text) this.search[back ? 'findPrevious' : 'findNext'](text, { caseSensitive: false });
    else this.search.clearDecorations();
  }

  plainRows() {
    const buffer = this.term.buffer.active;
    return Array.from({ length: this.term.rows }, (_, row) => buffer.getLine(buffer.baseY + row)?.translateToString(true).trimEnd() ?? '');
  }

  change() {}
}

const NAMED = { Enter: '\r', Backspace: '\x7f', Tab: '\t', Escape: '\x1b', Delete: '\x1b[3~', Home: '\x1b[H', End: '\x1b[F', PageUp: '\x1b[5~', PageDown: '\x1b[6~' };
const ARROWS = { ArrowUp: 'A', ArrowDown: 'B', ArrowRight: 'C', ArrowLeft: 'D' };

class Rows {
  constructor(box, handlers) {
    Object.assign(this, { box, handlers, mine: false, screen: new RowScreen(box, { fit: 'screen' }) });
    // Letters come as input, also from a phone's keyboard or an input method; other keys as keys.
    this.typed = el('textarea', { class: 'typed', 'aria-label': 'Terminal input', autocapitalize: 'off', autocomplete: 'off', spellcheck: 'false', tabindex: '-1' });
    box.append(this.typed);
    this.typed.addEventListener('input', (event) => {
      if (event.isComposing) return;
      if (this.mine) handlers.keys(this.typed.value);
      else handlers.untaken();
      this.typed.value = '';
    });
    this.typed.addEventListener('compositionend', () => { if (this.mine) handlers.keys(this.typed.value); this.typed.value = ''; });
    box.addEventListener('click', () => { if (!getSelection().toString()) this.typed.focus({ preventScroll: true }); });
    box.addEventListener('keydown', (event) => this.key(event));
    box.addEventListener('paste', async (event) => {
      event.preventDefault();
      const text = event.clipboardData.getData('text');
      if (!this.mine) return handlers.untaken();
      if (await mayPaste(text)) handlers.paste(text);
      this.typed.focus({ preventScroll: true });
    });
    new ResizeObserver(() => { clearTimeout(this.timer); this.timer = setTimeout(() => this.mine && handlers.resized(), 200); }).observe(box);
  }

  key(event) {
    if (event.metaKey || event.isComposing) return;
    if (event.ctrlKey && event.key === ']') { event.preventDefault(); this.handlers.leave(); return; }
    let data = null;
    if (event.ctrlKey && /^[a-z[\]\\]$/i.test(event.key)) data = String.fromCharCode(event.key.toUpperCase().charCodeAt(0) & 31);
    else if (event.ctrlKey) return;
    else if (ARROWS[event.key]) data = `\x1b${this.applicationCursor ? 'O' : '['}${ARROWS[event.key]}`;
    else if (NAMED[event.key]) data = NAMED[event.key];
    else if (event.altKey && [...event.key].length === 1) data = `\x1b${event.key}`;
    else if ([...event.key].length === 1 && event.target !== this.typed) data = event.key;
    // Tab leaves the terminal unless it was taken over: then Shift-Tab does.
    if (data === null || (event.key === 'Tab' && (!this.mine || event.shiftKey))) return;
    if (!this.mine) { if ([...event.key].length === 1) this.handlers.untaken(); return; }
    if ((event.ctrlKey && event.key === 'v') || (event.ctrlKey && event.shiftKey)) return;
    event.preventDefault();
    this.handlers.keys(data);
  }

  usesBytes() { return false; }

  ownSize() {
    const style = getComputedStyle(this.box);
    const inner = (a, b, size) => size - parseFloat(style[a]) - parseFloat(style[b]);
    return { cols: Math.max(20, Math.floor(inner('paddingLeft', 'paddingRight', this.box.clientWidth) / 8.5)), rows: Math.max(5, Math.floor(inner('paddingTop', 'paddingBottom', this.box.clientHeight) / 17.6)) };
  }

  setMine(mine) { this.mine = mine; if (mine) this.typed.focus({ preventScroll: true }); }
  setSize() {}
  frame() {}
  change(change) { this.applicationCursor = change.application_cursor; this.screen.change(change); }
  plainRows() { return this.screen.plainRows(); }

  find(text) {
    this.screen.rows.querySelectorAll('.differs').forEach((row) => row.classList.remove('differs'));
    if (!text) return;
    this.screen.plainRows().forEach((row, index) => this.screen.rows.children[index].classList.toggle('differs', row.toLowerCase().includes(text.toLowerCase())));
  }
}

export async function makeTerminal(box, engine, handlers) {
  if (engine === 'xterm.js') {
    try {
      return await Xterm.make(box, handlers);
    } catch (error) {
      console.error(error);
      box.replaceChildren();
    }
  }
  return new Rows(box, handlers);
}
