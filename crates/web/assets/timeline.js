// What happened when: how much was printed, events, and the screen at any moment.
import { tryCall } from './api.js';
import { RowScreen, plain } from './rows.js';
import { Runs } from './runs.js';
import { clock, el, svg, toast } from './ui.js';

const HEIGHT = 74;
const WIDTH = 1000;
const EVENT_WORDS = {
  started: () => 'started', exit: (e) => `ended: ${e.status}`, awaiting_input: (e) => `asks: ${e.prompt}`, went_on: () => 'got its input', listening: () => 'takes input, and goes on without', port: (e) => `listens on port ${e.port}`,
  asking: (e) => `asks to execute ${e.command}`, answered: (e) => `${e.allowed ? 'allowed' : 'denied'} by ${e.by}`, exec_refused: (e) => `not executed: ${e.command}`, host_refused: (e) => `not connected to ${e.host}:${e.port}`, taken: (e) => `taken over by ${e.by}`,
  given_back: (e) => `given back: ${e.why}`, watch: (e) => `watch ${e.watch}`, stopped: () => 'stopped', continued: () => 'goes on', took_over: () => 'another keeper took over', all_gone: () => 'all that it left has ended',
  step: (e) => `step ${e.step}${e.by === 'a person' ? ', by a person' : ''}: ${e.command} ${e.exit_code === undefined ? '' : `(${e.exit_code === 0 ? 'ok' : `exit code ${e.exit_code}`}${e.took_ms === undefined ? '' : `, ${clock(e.took_ms, e.took_ms)}`})`}`, step_changed: (e) => `step ${e.step} changed ${e.changed.join(', ')}`, step_forged: (e) => `the shell was ended: ${e.why}`, queued: () => 'queued',
};
// A step is told twice; the first time says nothing that the second does not. What it changed is found out later, and no mark of its own.
const UNTOLD = new Set(['step_started']);
const MARKED_OTHERWISE = new Set(['step', 'step_changed']);
const kindOf = (event) => (event.event === 'step' ? (event.exit_code === 0 ? 'ok' : 'bad') : event.event === 'exit' ? (event.status === 'completed' ? 'ok' : 'bad') : ['awaiting_input', 'asking', 'exec_refused', 'host_refused'].includes(event.event) ? 'asks' : 'note');

export class Timeline {
  constructor(root, job, others) {
    Object.assign(this, { root, job, at: null, pinned: null, playing: null, wantedAt: null });
    this.runs = new Runs(job, others, () => this.runChosen());
    this.time = el('output', { 'aria-live': 'off' });
    this.slider = el('input', { type: 'range', min: '0', max: '1', step: 'any', value: '1', 'aria-label': 'Moment' });
    this.play = el('button', { type: 'button', class: 'primary', onclick: () => this.toggle() }, 'Play');
    this.speed = el('select', { class: 'plain', 'aria-label': 'Speed' }, ...[1, 2, 4, 8, 16].map((speed) => el('option', { value: speed }, `${speed}×`)));
    this.pin = el('button', { type: 'button', class: 'plain', onclick: () => this.compare() }, 'Compare from here');
    this.axis = el('div', { class: 'axis', 'aria-hidden': 'true' });
    const save = (format) => el('button', { type: 'button', class: 'plain', onclick: () => this.save(format) }, format === 'cast' ? 'Recording (.cast)' : 'Picture (.svg)');
    this.picture = svg('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': 'How much was printed over time, with events' });
    this.events = el('div', { class: 'events', role: 'group', 'aria-label': 'Events', tabindex: '0' });
    this.first = this.moment('Marked');
    this.second = this.moment('Now');
    this.first.node.hidden = true;
    this.moments = el('div', { class: 'moments' }, this.first.node, this.second.node);
    root.append(el('div', { class: 'time-bar' }, this.play, this.speed, this.time, this.pin, this.runs.choice, el('span', { class: 'grow' }), save('cast'), save('svg')),
      el('div', { class: 'strip' }, this.picture, this.slider, this.axis), el('div', { class: 'beside' }, el('div', {}, this.moments, this.runs.panel), this.events));
    this.slider.addEventListener('input', () => { this.stop(); this.go(Number(this.slider.value)); });
    this.picture.addEventListener('pointerdown', (event) => { this.stop(); this.drag(event); this.picture.setPointerCapture(event.pointerId); });
    this.picture.addEventListener('pointermove', (event) => { if (event.buttons) this.drag(event); });
  }

  moment(title) {
    const head = el('h3', {}, title);
    const box = el('div', { class: 'term', role: 'region', tabindex: '0', 'aria-label': `${title}: screen` });
    return { head, box, node: el('div', { class: 'moment' }, head, box), screen: new RowScreen(box, { trim: true }) };
  }

  async shown() {
    this.runs.offer();
    const data = await tryCall('timeline', { job: this.job });
    if (!data) return;
    const atEnd = this.at === null || this.at >= this.data?.length_ms;
    this.data = data;
    this.slider.max = data.length_ms;
    this.drawStrip();
    this.go(atEnd ? data.length_ms : this.at);
  }

  // The job goes on: what happened since is added, at most every two seconds.
  changed() {
    if (this.root.hidden || this.again || !this.data?.live || this.playing) return;
    this.again = setTimeout(() => { this.again = null; if (!this.root.hidden && !document.hidden) this.shown(); }, 2000);
  }

  clock(ms) { return clock(ms, this.data?.length_ms); }

  x(ms) { return (ms / this.data.length_ms) * WIDTH; }

  drawStrip() {
    const { bins, events, resizes } = this.data;
    const most = Math.max(1, ...bins.map((bytes) => Math.log1p(bytes)));
    const step = WIDTH / bins.length;
    const bars = bins.map((bytes, index) => { const height = (Math.log1p(bytes) / most) * (HEIGHT - 14); return height ? `M${index * step} ${HEIGHT}h${step * 0.86}v${-height}h${-step * 0.86}z` : ''; }).join('');
    const line = (at, kind) => svg('line', { class: `event ${kind}`, x1: this.x(at), x2: this.x(at), y1: 0, y2: HEIGHT });
    // A step of a shell is as wide as it took.
    const steps = events.filter((event) => event.event === 'step' && event.took_ms !== undefined).map((event) => {
      const start = Math.max(0, event.started_at - this.data.created_at);
      return svg('rect', { class: `step ${kindOf(event)}`, x: this.x(start), width: Math.max(2, this.x(event.took_ms) - 1), y: 0, height: 6, rx: 2 });
    });
    const told = events.filter((event) => !UNTOLD.has(event.event));
    this.cursor = svg('line', { class: 'now', y1: -4, y2: HEIGHT + 4, x1: 0, x2: 0 });
    this.mark = svg('line', { class: 'pin', y1: -4, y2: HEIGHT + 4, x1: -9, x2: -9 });
    this.picture.replaceChildren(svg('path', { class: 'density', d: bars }), ...told.filter((event) => !MARKED_OTHERWISE.has(event.event)).map((event) => line(event.at_ms, kindOf(event))), ...steps, ...resizes.map((one) => line(one.at_ms, 'resize')), this.mark, this.cursor);
    const rows = [...told.map((event) => [event.at_ms, EVENT_WORDS[event.event]?.(event) ?? event.event, kindOf(event)]), ...resizes.map((one) => [one.at_ms, `resized to ${one.size.cols}×${one.size.rows}`, 'note'])].sort((a, b) => a[0] - b[0]);
    this.events.replaceChildren(...rows.map(([at, words, kind]) => el('button', { type: 'button', class: kind, onclick: () => { this.stop(); this.go(at); } }, el('span', {}, this.clock(at)), el('span', {}, words))));
    const began = new Date(this.data.created_at).toLocaleTimeString();
    this.axis.replaceChildren(...[0, 0.25, 0.5, 0.75, 1].map((part) => el('span', {}, part === 0 ? began : `+${this.clock(this.data.length_ms * part)}`)));
    this.drawPin();
  }

  drag(event) {
    const { left, width } = this.picture.getBoundingClientRect();
    this.go(Math.min(1, Math.max(0, (event.clientX - left) / width)) * this.data.length_ms);
  }

  go(at) {
    this.at = Math.round(at);
    this.slider.value = this.at;
    this.slider.setAttribute('aria-valuetext', this.clock(this.at));
    this.time.textContent = this.clock(this.at);
    this.cursor?.setAttribute('x1', this.x(this.at));
    this.cursor?.setAttribute('x2', this.x(this.at));
    this.load();
  }

  // The newest moment that was asked for is the next that is fetched.
  async load() {
    if (this.loading) { this.wantedAt = this.at; return; }
    this.loading = true;
    const slow = setTimeout(() => this.root.classList.add('reading'), 400);
    let at = this.at;
    do {
      this.wantedAt = null;
      // The end of one is compared with the end of the other.
      const atEnd = at >= this.data.length_ms;
      const [shot, other] = await Promise.all([tryCall('screen', { job: this.job, at_ms: at }), this.runs.screen(atEnd ? Number.MAX_SAFE_INTEGER : at)]);
      if (other) { this.first.screen.show(other); this.first.head.textContent = `${this.runs.name()} at ${atEnd ? 'its end' : this.clock(at)}`; }
      if (shot) { this.shot = shot; this.second.screen.show(shot); this.second.head.textContent = this.clock(at); this.root.dataset.shown = at; this.differ(); }
      at = this.wantedAt;
    } while (at !== null);
    clearTimeout(slow);
    this.root.classList.remove('reading');
    this.loading = false;
  }

  // Another run is beside this one, at the same time after its start.
  runChosen() {
    if (this.runs.chosen && this.pinned) this.compare();
    this.pin.hidden = Boolean(this.runs.chosen);
    this.first.node.hidden = !this.runs.chosen;
    this.moments.classList.toggle('two', Boolean(this.runs.chosen));
    this.go(this.at);
  }

  compare() {
    if (this.pinned) this.pinned = null;
    else if (this.shot) this.pinned = { at: this.at, shot: this.shot };
    this.pin.textContent = this.pinned ? 'End comparison' : 'Compare from here';
    this.first.node.hidden = !this.pinned;
    this.moments.classList.toggle('two', Boolean(this.pinned));
    if (this.pinned) { this.first.screen.show(this.pinned.shot); this.first.head.textContent = `${this.clock(this.pinned.at)} (marked)`; }
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
      const differs = Boolean(this.pinned || this.runs.chosen) && plain(a.text[row] ?? '').trimEnd() !== plain(b.text[row] ?? '').trimEnd();
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
