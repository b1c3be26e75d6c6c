// The list of jobs, sorted by who needs somebody, and the inbox.
import { Socket, hello } from './api.js';
import { Inbox } from './inbox.js';
import { answers } from './question.js';
import { RowScreen } from './rows.js';
import { $, ago, el, folderName, portLink, say, sessionName, stateWords, themeButton } from './ui.js';

const GROUPS = [['asks', 'Needs you'], ['failed', 'Failed'], ['running', 'Running'], ['done', 'Done']];
const DONE_SHOWN = 24;

const jobs = new Map();
const cards = new Map();
let me = null;
let socket = null;
let layout = localStorage.getItem('outlast-layout') ?? 'grid';
let known = false;
let allDone = false;
// The one kind that is shown, where somebody chose one.
let only = null;

themeButton();

class CardView {
  constructor(job) {
    this.dot = el('span', { class: 'dot' });
    this.link = el('a', { href: `/job/${job.job}` });
    this.number = el('span', { class: 'number' }, job.job);
    this.what = el('p', { class: 'what' });
    this.tile = el('a', { class: 'tile', href: `/job/${job.job}`, tabindex: '-1', 'aria-hidden': 'true' });
    this.ask = el('div', { class: 'ask', hidden: true });
    this.foot = el('div', { class: 'foot' });
    this.node = el('article', { class: 'card' }, el('div', { class: 'head' }, this.dot, el('h3', {}, this.link), this.number), this.what, this.tile, this.ask, this.foot);
    this.item = el('li', {}, this.node);
    this.screen = new RowScreen(this.tile, { fit: 'tile', max: 11.5 });
    this.tile.dataset.job = job.job;
    seen.observe(this.tile);
    this.update(job);
  }

  update(job) {
    const asked = JSON.stringify([job.rank, job.awaiting]);
    this.job = job;
    this.dot.className = `dot ${job.rank}`;
    this.node.className = `card ${job.rank}`;
    this.link.textContent = job.name ?? job.description ?? job.command;
    this.link.title = job.command;
    const named = job.name || job.description;
    this.what.replaceChildren(el('code', {}, named ? job.command : job.last_line || folderName(job.folder)), ...(named && job.last_line ? [el('code', { class: 'last' }, job.last_line)] : []));
    this.what.title = job.command;
    if (asked !== this.asked) {
      this.asked = asked;
      this.ask.hidden = job.rank !== 'asks';
      this.ask.replaceChildren(...(job.rank === 'asks' ? answers(job, me) : []));
    }
    this.times();
  }

  times() {
    const { job } = this;
    const since = job.ended_at ? `${ago(job.ended_at)} ago, took ${ago(job.created_at, job.ended_at)}` : ago(job.created_at);
    // Most of what changes each second is seen on the screen alone.
    const text = JSON.stringify([job.rank, stateWords(job), since, job.folder, job.host, job.session, job.held_by, job.pinned, job.ports]);
    if (text === this.footed) return;
    this.footed = text;
    this.foot.replaceChildren(el('span', { class: `state ${job.rank}` }, stateWords(job)), el('span', {}, since), el('span', { title: job.folder }, folderName(job.folder)),
      ...(job.host ? [el('span', { class: 'tag host' }, job.host)] : []), ...[sessionName(job.session)].filter(Boolean).map((session) => el('span', {}, session)), ...(job.held_by ? [el('span', { class: 'tag' }, 'taken over')] : []), ...(job.pinned ? [el('span', { class: 'tag' }, 'pinned')] : []), ...job.ports.map((port) => portLink(port, job.host)));
  }
}

// Live screens only for what is in view.
const inView = new Set();
const seen = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) inView[isIntersecting ? 'add' : 'delete'](target.dataset.job);
  wantTiles();
});
let wanted = null;
function wantTiles() {
  const list = layout === 'grid' && !document.hidden && !$('jobs').hidden ? [...inView].filter((job) => jobs.has(job)).sort() : [];
  const text = JSON.stringify(list);
  if (text === wanted || !socket) return;
  wanted = text;
  socket.send({ t: 'tiles', jobs: list });
}
document.addEventListener('visibilitychange', wantTiles);

function matches(job, words) {
  const text = [job.job, job.name, job.command, job.description, job.session, job.folder, job.state, job.last_line, job.host].join(' ').toLowerCase();
  return words.every((word) => text.includes(word));
}

function draw() {
  const words = $('filter').value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = [...jobs.values()].filter((job) => matches(job, words));
  drawChips(found);
  const shown = found.filter((job) => !only || job.rank === only);
  const root = $('groups');
  $('jobs').className = layout === 'list' ? 'as-list' : '';
  for (const [rank, title] of GROUPS) {
    let group = root.querySelector(`[data-rank="${rank}"]`);
    if (!group) {
      group = el('section', { class: `group ${rank}`, 'data-rank': rank, 'aria-labelledby': `group-${rank}` }, el('h2', { id: `group-${rank}` }), el('ul', { class: 'cards' }), el('button', { type: 'button', class: 'plain more', hidden: true, onclick: () => { allDone = true; draw(); } }));
      root.append(group);
    }
    let list = shown.filter((job) => job.rank === rank).sort((a, b) => (b.ended_at ?? b.created_at) - (a.ended_at ?? a.created_at));
    const all = list.length;
    if (rank === 'done' && !allDone) list = list.slice(0, DONE_SHOWN);
    const more = group.querySelector('.more');
    more.hidden = list.length === all;
    more.textContent = `Show all ${all}`;
    group.hidden = list.length === 0;
    group.querySelector('h2').replaceChildren(el('b', {}, title), String(all));
    const into = group.querySelector('ul');
    list.forEach((job, index) => {
      const { item } = view(job);
      if (into.children[index] !== item) into.insertBefore(item, into.children[index] ?? null);
    });
    while (into.childElementCount > list.length) into.lastChild.remove();
  }
  let empty = $('empty');
  if (known && shown.length === 0 && !empty) {
    root.append(el('div', { class: 'empty', id: 'empty' }, el('h2', {}, jobs.size ? 'No job matches' : 'No jobs yet'), el('p', {}, jobs.size ? 'Change the filter to see others.' : 'Run something, and it shows up here:'), jobs.size ? null : el('code', {}, "outlast run -d --name web 'npm run dev'")));
  } else if (shown.length > 0) empty?.remove();
  const asks = [...jobs.values()].filter((job) => job.rank === 'asks').length;
  $('inbox-count').hidden = asks === 0;
  $('inbox-count').textContent = asks;
  if (!$('jobs').hidden) document.title = asks ? `(${asks}) Jobs · Outlast` : 'Jobs · Outlast';
}

// How many there are of each kind; one chosen shows that kind alone.
function drawChips(found) {
  if (!found.some((job) => job.rank === only)) only = null;
  for (const [rank, title] of GROUPS) {
    let chip = $('chips').querySelector(`[data-rank="${rank}"]`);
    if (!chip) {
      chip = el('button', { type: 'button', 'data-rank': rank, onclick: () => { only = only === rank ? null : rank; draw(); wantTiles(); } }, el('span', { class: `dot ${rank}` }), el('b'), title.toLowerCase());
      $('chips').append(chip);
    }
    const count = String(found.filter((job) => job.rank === rank).length);
    if (chip.querySelector('b').textContent !== count) chip.querySelector('b').textContent = count;
    chip.hidden = count === '0';
    chip.setAttribute('aria-pressed', String(only === rank));
  }
}

function view(job) {
  if (!cards.has(job.job)) cards.set(job.job, new CardView(job));
  return cards.get(job.job);
}

function changed({ changed, gone, troubles = {}, fleet = null }) {
  drawTroubles(troubles);
  drawFleet(fleet);
  for (const job of changed) {
    const before = jobs.get(job.job);
    jobs.set(job.job, job);
    cards.get(job.job)?.update(job);
    if (known && job.rank === 'asks' && before?.rank !== 'asks') tell(job);
  }
  for (const job of gone) {
    jobs.delete(job);
    const card = cards.get(job);
    if (card) { seen.unobserve(card.tile); inView.delete(job); card.item.remove(); cards.delete(job); }
  }
  known = true;
  draw();
  wantTiles();
  inbox.changed();
}

// Hosts that do not answer: their jobs are shown as they were.
// The whole fleet in a line: the list has only its first jobs.
function drawFleet(words) {
  const text = words ? `Fleet: ${words}` : '';
  if (text === $('fleet').textContent) return;
  $('fleet').textContent = text;
  $('fleet').hidden = !words;
}

function drawTroubles(troubles) {
  const text = JSON.stringify(troubles);
  if (text === $('troubles').dataset.shown) return;
  $('troubles').dataset.shown = text;
  $('troubles').replaceChildren(...Object.entries(troubles).map(([host, why]) => el('p', {}, el('b', {}, host || 'this machine'), ` ${why}`)));
  $('troubles').hidden = Object.keys(troubles).length === 0;
}

function tell(job) {
  const title = `${job.name ?? job.command} ${stateWords(job)}`;
  say(title);
  if (document.hidden && 'Notification' in window && Notification.permission === 'granted') {
    new Notification(title, { body: job.awaiting?.prompt ?? '', tag: `outlast-${job.job}` }).addEventListener('click', () => { window.focus(); location.assign(`/job/${job.job}`); });
  }
}

const inbox = new Inbox($('inbox'), () => me);

function show(path) {
  const isInbox = path === '/inbox';
  $('jobs').hidden = isInbox;
  $('inbox').hidden = !isInbox;
  document.querySelector('.tools .search').hidden = isInbox;
  document.querySelector('.tools .switch').hidden = isInbox;
  $('title').textContent = isInbox ? 'Inbox' : 'Jobs';
  document.title = isInbox ? 'Inbox · Outlast' : 'Jobs · Outlast';
  for (const [id, on] of [['tab-jobs', !isInbox], ['tab-inbox', isInbox]]) {
    if (on) $(id).setAttribute('aria-current', 'page');
    else $(id).removeAttribute('aria-current');
  }
  wantTiles();
  inbox.shown(isInbox);
}

for (const id of ['tab-jobs', 'tab-inbox']) {
  $(id).addEventListener('click', (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const path = new URL(event.currentTarget.href).pathname;
    history.pushState(null, '', path);
    show(path);
  });
}
addEventListener('popstate', () => show(location.pathname));

function setLayout(to) {
  layout = to;
  localStorage.setItem('outlast-layout', to);
  $('as-grid').setAttribute('aria-pressed', String(to === 'grid'));
  $('as-list').setAttribute('aria-pressed', String(to === 'list'));
  draw();
  wantTiles();
}
$('as-grid').addEventListener('click', () => setLayout('grid'));
$('as-list').addEventListener('click', () => setLayout('list'));
$('filter').addEventListener('input', draw);

// Keys: / to filter, arrows from job to job, Enter opens.
addEventListener('keydown', (event) => {
  const typing = event.target.matches?.('input, textarea, select');
  if (event.key === '/' && !typing && !$('jobs').hidden) { event.preventDefault(); $('filter').focus(); }
  if (event.key === 'Escape' && event.target === $('filter')) { $('filter').value = ''; $('filter').blur(); draw(); }
  if (typing || !['ArrowDown', 'ArrowUp', 'ArrowLeft', 'ArrowRight'].includes(event.key)) return;
  const links = [...$('jobs').querySelectorAll('.card h3 a')].filter((link) => link.offsetParent);
  const at = links.indexOf(document.activeElement);
  const step = event.key === 'ArrowDown' || event.key === 'ArrowRight' ? 1 : -1;
  const next = links[at < 0 ? 0 : Math.min(links.length - 1, Math.max(0, at + step))];
  if (next) { event.preventDefault(); next.focus(); }
});

me = await hello();
if (me?.visitor === 'guest') location.replace(`/job/${me.job}`);
else if (me) {
  setLayout(layout);
  show(location.pathname);
  socket = new Socket({
    opened: (opened) => { socket = opened; opened.send({ t: 'jobs' }); wanted = null; wantTiles(); },
    said: (message) => {
      if (message.t === 'jobs') changed(message);
      if (message.t === 'rows') cards.get(message.job)?.screen.change(message);
    },
  });
  setInterval(() => { if (!document.hidden) cards.forEach((card) => card.item.isConnected && card.times()); }, 5000);
}
