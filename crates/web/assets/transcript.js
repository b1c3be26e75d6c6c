// All that a job printed, as text, however long: the end first, and what is before it on the way up.
import { call, tryCall } from './api.js';
import { el, toast } from './ui.js';

const PIECE = 128 << 10;

export class Transcript {
  constructor(root, job) {
    Object.assign(this, { root, job, from: null, to: 0, busy: false });
    this.pattern = el('input', { type: 'search', placeholder: 'Search all of it (regular expression)', 'aria-label': 'Search the transcript', spellcheck: 'false' });
    this.count = el('span', { class: 'muted', role: 'status' });
    this.found = el('ol', { class: 'found', hidden: true, tabindex: '0', 'aria-label': 'Lines that match' });
    this.text = el('pre', { class: 'text', tabindex: '0', role: 'log', 'aria-label': 'Transcript' });
    const form = el('form', { class: 'search', onsubmit: (event) => { event.preventDefault(); this.search(); } }, this.pattern);
    root.append(el('div', { class: 'text-bar' }, form, this.count, el('span', { class: 'grow' }),
      el('button', { type: 'button', class: 'plain', onclick: () => this.begin() }, 'Beginning'), el('button', { type: 'button', class: 'plain', onclick: () => this.end() }, 'End')), this.found, this.text);
    this.text.addEventListener('scroll', () => this.scrolled());
  }

  async shown() {
    if (this.from === null) await this.end();
    else await this.more();
  }

  // The server said that there is more: shown at most a few times a second.
  changed() {
    if (this.root.hidden || this.timer) return;
    this.timer = setTimeout(() => { this.timer = null; this.more(); }, 300);
  }

  async read(from, to) {
    const text = await call('text', { job: this.job, from, to });
    return { ...text, words: text.omitted ? `${text.head}\n[… ${text.omitted[1] - text.omitted[0]} bytes …]\n${text.tail}` : text.head };
  }

  async end() {
    const { log_end: end } = (await tryCall('job', { job: this.job })) ?? { log_end: 0 };
    await this.show(Math.max(0, end - PIECE), null, true);
  }

  async begin() { await this.show(0, PIECE, false); this.text.scrollTop = 0; }

  async show(from, to, atEnd) {
    if (this.busy) return;
    this.busy = true;
    try {
      const text = await this.read(from, to);
      Object.assign(this, { from, to: text.offset, follows: atEnd });
      this.text.replaceChildren(document.createTextNode(text.words));
      if (atEnd) this.text.scrollTop = this.text.scrollHeight;
    } catch (error) { toast(error.message, error.hint); }
    this.busy = false;
  }

  // What was printed since, where the end is in view.
  async more() {
    if (this.to === null || !this.nearEnd()) return;
    if (this.busy) { this.again = true; return; }
    this.busy = true;
    try {
      const text = await this.read(this.to, this.to + PIECE);
      if (text.offset > this.to) {
        this.text.append(document.createTextNode(text.words));
        if (text.offset - this.to < PIECE / 2) this.follows = true;
        else if (this.follows) this.changed();
        this.to = text.offset;
        while (this.text.childNodes.length > 40) { this.text.firstChild.remove(); this.from = null; }
        if (this.follows) this.text.scrollTop = this.text.scrollHeight;
      }
    } catch { /* a server that is gone says so elsewhere */ }
    this.busy = false;
    if (this.again) { this.again = false; this.changed(); }
  }

  nearEnd() { return this.text.scrollHeight - this.text.scrollTop - this.text.clientHeight < 60; }

  async scrolled() {
    if (this.nearEnd()) this.changed();
    if (this.busy || !this.from || this.text.scrollTop > 200) return;
    this.busy = true;
    const before = this.text.scrollHeight;
    const from = Math.max(0, this.from - PIECE);
    try {
      const text = await this.read(from, this.from);
      this.text.prepend(document.createTextNode(text.words));
      this.from = from;
      this.text.scrollTop += this.text.scrollHeight - before;
    } catch (error) { toast(error.message, error.hint); }
    this.busy = false;
  }

  async search() {
    const pattern = this.pattern.value;
    this.found.hidden = !pattern;
    this.count.textContent = '';
    if (!pattern) return;
    const matches = await tryCall('grep', { job: this.job, pattern });
    if (!matches) return;
    this.count.textContent = `${matches.found} of ${matches.searched} lines${matches.omitted_bytes ? ', the first are shown' : ''}`;
    this.found.replaceChildren(...matches.lines.map((line) => el('li', {}, el('span', {}, String(line.number)), el('code', {}, line.text))));
  }
}
