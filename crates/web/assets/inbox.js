// What waits for a person, and what happened lately.
import { tryCall } from './api.js';
import { answers, approvalButtons, passwordForm } from './question.js';
import { ago, el, sessionName } from './ui.js';

const TITLES = { approval: 'Approval', password: 'Password', question: 'Question' };

export class Inbox {
  constructor(root, me) {
    Object.assign(this, { root, me, on: false, busy: false, again: false });
    root.className = 'inbox';
    this.note = el('p', { class: 'note' });
    this.waiting = el('div');
    this.failed = el('div');
    this.log = el('div');
    root.append(this.note, this.waiting, this.failed, this.log);
    this.items = new Map();
  }

  shown(on) {
    this.on = on;
    if (on) this.load();
  }

  changed() {
    if (this.on) this.load();
  }

  async load() {
    if (this.busy) { this.again = true; return; }
    this.busy = true;
    const inbox = await tryCall('inbox');
    if (inbox) this.draw(inbox);
    this.busy = false;
    if (this.again) { this.again = false; setTimeout(() => this.load(), 500); }
  }

  draw({ items, deliveries, events }) {
    this.notifications();
    // A form in which somebody types is not drawn again.
    const next = new Map();
    for (const item of items) {
      const name = JSON.stringify([item.kind, item.job, item.prompt, item.asked?.question]);
      next.set(name, this.items.get(name) ?? this.item(item));
    }
    this.items = next;
    const nodes = [...next.values()];
    if (!nodes.length) nodes.push(el('div', { class: 'empty' }, el('h2', {}, 'Nobody needs you'), el('p', {}, 'Questions, passwords and approvals of your jobs show up here.')));
    if (nodes.some((node, index) => this.waiting.children[index] !== node) || this.waiting.childElementCount !== nodes.length) this.waiting.replaceChildren(...nodes);
    this.failed.replaceChildren(...(deliveries.length ? [el('h2', {}, 'Deliveries that failed'), el('ul', { class: 'log' }, ...deliveries.map((one) =>
      el('li', {}, el('time', {}, one.at ? ago(one.at) : ''), el('a', { href: `/job/${one.job}` }, `job ${one.job}`), el('span', { title: one.trouble }, `${one.kind} ${one.target}: ${one.trouble ?? 'given up'}`))))] : []));
    this.log.replaceChildren(...(events.length ? [el('h2', {}, 'Lately'), el('ul', { class: 'log' }, ...events.map((one) =>
      el('li', {}, el('time', { datetime: new Date(one.at).toISOString() }, `${ago(one.at)} ago`), el('a', { href: `/job/${one.job}` }, one.name ?? `job ${one.job}`), el('span', { title: one.text }, one.text))))] : []));
  }

  item(item) {
    const readOnly = this.me()?.read_only;
    const body = el('div', { class: 'ask' });
    const top = el('div', { class: 'top' }, el('span', { class: 'kind' }, TITLES[item.kind]), el('a', { href: `/job/${item.job}` }, item.name ?? item.command), el('span', { class: 'left' }, sessionName(item.session)));
    if (item.kind === 'approval') {
      const box = el('div', { class: 'answers' }, ...(readOnly ? [] : approvalButtons(item.job, item.asked, () => this.load())));
      body.append(el('code', { class: 'prompt' }, item.asked.command), el('span', { class: 'why' }, `${item.asked.why ? `${item.asked.why} · ` : ''}rule ${item.asked.rule}, ${item.asked.place}`), box);
    } else if (item.kind === 'password') {
      body.append(el('span', { class: 'prompt' }, item.prompt.trim()), el('div', { class: 'answers' }, readOnly ? null : passwordForm(item)));
    } else {
      body.append(...answers({ ...item, awaiting: { kind: item.input, prompt: item.prompt } }, this.me()));
    }
    return el('section', { class: 'item', 'aria-label': `${TITLES[item.kind]} of ${item.name ?? `job ${item.job}`}` }, top, body);
  }

  notifications() {
    if (!('Notification' in window) || Notification.permission !== 'default') { this.note.replaceChildren(); return; }
    if (this.note.childElementCount) return;
    this.note.append(el('span', {}, 'Be told when a job needs you and this page is not in front.'), el('button', { type: 'button', class: 'plain', onclick: async () => { await Notification.requestPermission(); this.note.replaceChildren(); } }, 'Allow notifications'));
  }
}
