// What happened when: how much was printed, events, and the screen at any moment.
import { tryCall } from './api.js';
import { RowScreen, plain } from './rows.js';
import { clock, el, svg, toast } from './ui.js';

const HEIGHT = 74;
const WIDTH = 1000;
const EVENT_WORDS = {
  started: () => 'started', exit: (e) => `ended: ${e.status}`, awaiting_input: (e) => `asks: ${e.prompt}`, went_on: () => 'got its input', port: (e) => `listens on port ${e.port}`,
  asking: (e) => `asks to execute ${e.command}`, answered: (e) => `${e.allowed ? 'allowed' : 'denied'} by ${e.by}`, exec_refused: (e) => `not executed: ${e.command}`, taken: (e) => `taken over by ${e.by}`,
  given_back: (e) => `given back: ${e.why}`, watch: (e) => `watch ${e.watch}`, stopped: () => 'stopped', continued: () => 'goes on', took_over: () => 'another keeper took over', all_gone: () => 'all that it left has ended',
};

export class Timeline {
  constructor(root, job) {
    Object.assign(this, { root, job, at: null, pinned: null, playing: null, wantedAt: null });
    this.time = el('output', { 'aria-live': 'off' });
    this.slider = el('input', { type: 'range', min: '0', max: '1', step: 'any', value: '1', 'aria-label': 'Moment' });
    this.play = el('button', { type: 'button', class: 'primary', onclick: () => this.toggle() }, 'Play');
    this.speed = el('select', { class: 'plain', 'aria-label': 'Speed' }, ...[1, 2, 4, 8, 16].map((speed) => el('option', { value: speed }, `${speed}×`)));
    this.pin = el('button', { type: 'button', class: 'plain', onclick: () => this.compare() }, 'Compare from here');
    const save = (format) => el('button', { type: 'button', class: 'plain', onclick: () => this.save(format) }, format === 'cast' ? 'Recording (.cast)' : 'Picture (.svg)');
    this.picture = svg('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': 'How much was printed over time, with events' });
    this.events = el('div', { class: 'events', role: 'group', 'aria-label': 'Events', tabindex: '0' });
    this.first = this.moment('Marked');
    this.second = this.moment('Now');
    this.first.node.hidden = true;
    this.moments = el('div', { class: 'moments' }, this.first.node, this.second.node);
    root.append(el('div', { class: 'time-bar' }, this.play, this.speed, this.time, this.pin, el('span', { class: 'grow' }), save('cast'), save('svg')),
      el('div', { class: 'strip' }, this.picture, this.slider), el('div', { class: 'beside' }, this.moments, this.events));
    this.slider.addEventListener('input', () => { this.stop(); this.go(Number(this.slider.value)); });
    this.picture.addEventListener('pointerdown', (event) => { this.stop(); this.drag(event); this.picture.setPointerCapture(event.pointerId); });
    this.picture.addEventListener('pointermove', (event) => { if (event.buttons) this.drag(event); });
  }

  moment(title) {
    const head = el('h3', {}, title);
    const box = el('div', { class: 'term', role: 'region', tabindex: '0', 'aria-label': `${title}: screen` });
    return { head, box, node: el('div', { class: 'moment' }, head, box), screen: new RowScreen(box) };
  }

  async shown() {
    const data = await tryCall('timeline', { job: this.job });
    if (!data) return;
    this.data = data;
    this.slider.max = data.length_ms;
    this.drawStrip();
    this.go(this.at ?? data.length_ms);
  }

  x(ms) { return (ms / this.data.length_ms) * WIDTH; }

  drawStrip() {
    const { bins, events, resizes } = this.data;
    const most = Math.max(1, ...bins.map((bytes) => Math.log1p(bytes)));
    const step = WIDTH / bins.length;
    const bars = bins.map((bytes, index) => { const height = (Math.log1p(bytes) / most) * (HEIGHT - 14); return height ? `M${index * step} ${HEIGHT}h${step * 0.86}v${-height}h${-step * 0.86}z` : ''; }).join('');
    const line = (at, kind) => svg('line', { class: `event ${kind}`, x1: this.x(at), x2: this.x(at), y1: 0, y2: HEIGHT });
    this.cursor = svg('line', { class: 'now', y1: -4, y2: HEIGHT + 4, x1: 0, x2: 0 });
    this.mark = svg('line', { class: 'pin', y1: -4, y2: HEIGHT + 4, x1: -9, x2: -9 });
    this.picture.replaceChildren(svg('path', { class: 'density', d: bars }), ...events.map((event) => line(event.at_ms, event.event)), ...resizes.map((one) => line(one.at_ms, 'resize')), this.mark, this.cursor);
    const rows = [...events.map((event) => [event.at_ms, EVENT_WORDS[event.event]?.(event) ?? event.event]), ...resizes.map((one) => [one.at_ms, `resized to ${one.size.cols}×${one.size.rows}`])].sort((a, b) => a[0] - b[0]);
    this.events.replaceChildren(...rows.map(([at, words]) => el('button', { type: 'button', onclick: () => { this.stop(); this.go(at); } }, el('span', {}, clock(at)), el('span', {}, words))));
    this.drawPin();
  }

  drag(event) {
    const { left, width } = this.picture.getBoundingClientRect();
    this.go(Math.min(1, Math.max(0, (event.clientX - left) / width)) * this.data.length_ms);
  }

  go(at) {
    this.at = Math.round(at);
    this.slider.value = this.at;
    this.slider.setAttribute('aria-valuetext', clock(this.at));
    this.time.textContent = clock(this.at);
    this.cursor?.setAttribute('x1', this.x(this.at));
    this.cursor?.setAttribute('x2', this.x(this.at));
    this.load();
  }

  // The newest moment that was asked for is the next that is fetched.
  async load() {
    if (this.loading) { this.wantedAt = this.at; return; }
    this.loading = true;
    let at = this.at;
    do {
      this.wantedAt = null;
      const shot = await tryCall('screen', { job: this.job, at_ms: at });
      if (shot) { this.shot = shot; this.second.screen.show(shot); this.second.head.textContent = clock(at); this.root.dataset.shown = at; this.differ(); }
      at = this.wantedAt;
    } while (at !== null);
    this.loading = false;
  }

  compare() {
    if (this.pinned) this.pinned = null;
    else if (this.shot) this.pinned = { at: this.at, shot: this.shot };
    this.pin.textContent = this.pinned ? 'End comparison' : 'Compare from here';
    this.first.node.hidden = !this.pinned;
    this.moments.classList.toggle('two', Boolean(this.pinned));
    if (this.pinned) { this.first.screen.show(this.pinned.shot); this.first.head.textContent = `${clock(this.pinned.at)} (marked)`; }
    this.drawPin();
    this.differ();
  }

  drawPin() {
    const x = this.pinned ? this.x(this.pinned.at) : -9;
    this.mark?.setAttribute('visibility', this.pinned ? 'visible' : 'hidden');
    this.mark?.setAttribute('x1', x);
    this.mark?.setAttribute('x2', x);
  }

  differ() {
    const [a, b] = [this.first.screen, this.second.screen];
    const count = Math.max(a.text.length, b.text.length);
    for (let row = 0; row < count; row += 1) {
      const differs = Boolean(this.pinned) && plain(a.text[row] ?? '').trimEnd() !== plain(b.text[row] ?? '').trimEnd();
      a.rows.children[row]?.classList.toggle('differs', differs);
      b.rows.children[row]?.classList.toggle('differs', differs);
    }
  }

  toggle() {
    if (this.playing) { this.stop(); return; }
    if (this.at >= this.data.length_ms) this.go(0);
    this.play.textContent = 'Pause';
    let last = performance.now();
    this.playing = setInterval(() => {
      const now = performance.now();
      const next = this.at + (now - last) * Number(this.speed.value);
      last = now;
      if (this.loading) return;
      this.go(Math.min(next, this.data.length_ms));
      if (next >= this.data.length_ms) this.stop();
    }, 100);
  }

  stop() {
    clearInterval(this.playing);
    this.playing = null;
    this.play.textContent = 'Play';
  }

  async save(format) {
    const file = await tryCall('export', { job: this.job, format, at_ms: format === 'svg' ? this.at : undefined });
    if (!file) return;
    const url = URL.createObjectURL(new Blob([file.text], { type: file.type }));
    const link = el('a', { href: url, download: file.name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
    toast(`${file.name} is saved`);
  }
}
