// This run beside another: which others there are, and what they printed that this one did not.
import { tryCall } from './api.js';
import { ago, el, stateWords } from './ui.js';

const MAX_OFFERED = 100;

export class Runs {
  // `others` gives the jobs of the list; `chosen` is told when another one is chosen, or none.
  constructor(job, others, chosen) {
    Object.assign(this, { job, others, chosen: null });
    this.choice = el('select', { class: 'plain', 'aria-label': 'Compare with another run' }, el('option', { value: '' }, 'Compare with a run …'));
    this.choice.addEventListener('change', () => { this.chosen = this.choice.value || null; this.load(); chosen(); });
    this.numbers = el('input', { type: 'checkbox', id: 'ignore-numbers' });
    this.numbers.addEventListener('change', () => this.load());
    this.summary = el('h3', { role: 'status' });
    this.lines = el('div', { class: 'diff', role: 'region', 'aria-label': 'Lines that differ', tabindex: '0' });
    this.panel = el('section', { class: 'compared', hidden: true, 'aria-label': 'What was printed, compared' },
      el('div', { class: 'time-bar' }, this.summary, el('span', { class: 'grow' }), el('label', { for: 'ignore-numbers' }, this.numbers, ' Ignore numbers')), this.lines);
  }

  // Runs of the same command first, then all others, newest first.
  offer() {
    const all = this.others();
    const own = all.find((job) => job.job === this.job);
    const isSame = (job) => own && job.command === own.command && job.folder === own.folder;
    const sorted = all.filter((job) => job.job !== this.job).sort((a, b) => Number(Boolean(isSame(b))) - Number(Boolean(isSame(a))) || b.created_at - a.created_at).slice(0, MAX_OFFERED);
    const option = (job) => el('option', { value: job.job }, `${job.job} ${job.name ?? job.command}`.slice(0, 48), ` · ${stateWords(job)}, ${ago(job.created_at)} ago`);
    const group = (label, jobs) => (jobs.length ? [el('optgroup', { label }, ...jobs.map(option))] : []);
    this.choice.replaceChildren(el('option', { value: '' }, this.chosen ? 'Without a comparison' : 'Compare with a run …'), ...group('The same command', sorted.filter(isSame)), ...group('Other jobs', sorted.filter((job) => !isSame(job))));
    this.choice.value = this.chosen ?? '';
    this.choice.hidden = sorted.length === 0;
  }

  name() { return `Job ${this.chosen}`; }

  async screen(at) {
    return this.chosen ? tryCall('screen', { job: this.chosen, at_ms: at }) : null;
  }

  async load() {
    this.panel.hidden = !this.chosen;
    this.offer();
    this.asked = (this.asked ?? 0) + 1;
    if (!this.chosen) return;
    const { asked } = this;
    const found = await tryCall('compare', { first: this.chosen, second: this.job, ignore_numbers: this.numbers.checked });
    // Another run may have been chosen meanwhile.
    if (!found || asked !== this.asked) return;
    const count = (n) => `${n} ${n === 1 ? 'line' : 'lines'}`;
    this.summary.textContent = found.same ? `Both printed the same${found.left_out ? ', but for a middle that was not compared' : ''}` : `Printed since job ${this.chosen}: ${count(found.added)} added, ${count(found.removed)} removed${found.cut ? ', the first are shown' : ''}${found.left_out ? ', the middle was not compared' : ''}`;
    this.lines.hidden = found.same;
    this.lines.replaceChildren(...found.hunks.flatMap((hunk) => [el('div', { class: 'place' }, `line ${hunk.second}`),
      ...hunk.lines.map((line) => el('div', { class: line.on }, el('span', { 'aria-label': { first: 'only before', second: 'only now', both: null }[line.on] }, { first: '−', second: '+', both: ' ' }[line.on]), line.text))]));
  }
}
