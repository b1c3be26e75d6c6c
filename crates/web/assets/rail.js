// The other jobs, beside the one that is open: to go from one to the next, and to hear when another needs somebody.
import { el, folderName, say, stateWords, toast } from './ui.js';

const RANKS = ['asks', 'failed', 'running', 'done'];
const MAX_SHOWN = 60;

export class Rail {
  constructor(root, name) {
    Object.assign(this, { root, name, jobs: new Map(), known: false, asks: 0 });
    document.body.classList.add('has-rail');
  }

  changed({ changed, gone }, drawTitle) {
    for (const job of changed) {
      const before = this.jobs.get(job.job);
      this.jobs.set(job.job, job);
      if (this.known && job.job !== this.name && job.rank === 'asks' && before?.rank !== 'asks') this.tell(job);
    }
    gone.forEach((job) => this.jobs.delete(job));
    this.known = true;
    // How many others need somebody: the title of the page says so.
    this.asks = [...this.jobs.values()].filter((job) => job.rank === 'asks' && job.job !== this.name).length;
    drawTitle();
    this.draw();
  }

  draw() {
    const all = [...this.jobs.values()].sort((a, b) => RANKS.indexOf(a.rank) - RANKS.indexOf(b.rank) || (b.ended_at ?? b.created_at) - (a.ended_at ?? a.created_at));
    const shown = all.slice(0, MAX_SHOWN);
    const text = JSON.stringify(shown.map((job) => [job.job, job.name, job.rank, stateWords(job)]));
    if (text === this.drawn) return;
    this.drawn = text;
    const focused = this.root.contains(document.activeElement) ? document.activeElement.dataset.job : null;
    this.root.replaceChildren(...shown.map((job) => el('a', { href: `/job/${job.job}`, class: job.rank, 'data-job': job.job, title: `${stateWords(job)} · ${folderName(job.folder)}`, 'aria-current': job.job === this.name ? 'page' : null },
      el('span', { class: `dot ${job.rank}` }), el('span', { class: 'name' }, job.name ?? job.description ?? job.command), el('span', { class: 'sr' }, stateWords(job)), el('span', { class: 'n' }, job.job))));
    if (focused) this.root.querySelector(`[data-job="${CSS.escape(focused)}"]`)?.focus();
  }

  tell(job) {
    const words = `${job.name ?? job.command} ${stateWords(job)}`;
    say(words);
    toast(words, job.awaiting?.prompt?.trim(), `/job/${job.job}`);
    if (document.hidden && 'Notification' in window && Notification.permission === 'granted') {
      new Notification(words, { body: job.awaiting?.prompt ?? '', tag: `outlast-${job.job}` }).addEventListener('click', () => { window.focus(); location.assign(`/job/${job.job}`); });
    }
  }
}
