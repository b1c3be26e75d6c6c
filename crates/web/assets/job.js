// One job: its terminal, its transcript, its timeline.
import { Socket, call, hello, tryCall } from './api.js';
import { answers } from './question.js';
import { Rail } from './rail.js';
import { makeTerminal } from './terminal.js';
import { Timeline } from './timeline.js';
import { Transcript } from './transcript.js';
import { $, ago, confirm, el, folderName, portLink, say, sessionName, stateWords, themeButton, toast } from './ui.js';

const name = decodeURIComponent(location.pathname.slice('/job/'.length));
const KEYS = [['y', ['y']], ['n', ['n']], ['Enter', ['Enter']], ['Ctrl-C', ['Ctrl-C']], ['Esc', ['Escape']], ['Tab', ['Tab']], ['↑', ['Up'], 'Up'], ['↓', ['Down'], 'Down'], ['←', ['Left'], 'Left'], ['→', ['Right'], 'Right']];

let me = null;
let job = null;
let view = null;
let socket = null;
let channel = 0;
let mine = false;
let over = false;
let rail = null;

themeButton();

// A failure stays one here, however long ago it was.
const rank = () => (['failed', 'lost'].includes(job.state) ? 'failed' : job.rank);

function drawFacts() {
  const title = job.name ?? job.description ?? job.command;
  $('title').textContent = title;
  $('title').title = job.command;
  document.title = `${rail?.asks ? `(${rail.asks}) ` : ''}${title} · Outlast`;
  $('dot').className = `dot ${rank()}`;
  $('state').className = `state ${rank()}`;
  $('state').textContent = stateWords(job);
  const time = job.ended_at ? `ran ${ago(job.created_at, job.ended_at)}, ended ${ago(job.ended_at)} ago` : `for ${ago(job.created_at)}`;
  $('facts').replaceChildren(el('span', {}, `job ${job.job}`), job.host ? el('span', { class: 'tag host' }, job.host) : '', job.name || job.description ? el('code', {}, job.command) : '', el('span', {}, time),
    ...(job.folder ? [el('span', { class: 'wide', title: job.folder }, folderName(job.folder)), ...[sessionName(job.session)].filter(Boolean).map((session) => el('span', { class: 'wide' }, `session ${session}`))] : []), ...(job.ports ?? []).map((port) => portLink(port, job.host)),
    ...(me.visitor === 'guest' ? [el('span', {}, `shared with you until ${new Date(me.until).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })}`)] : []));
  const acts = job.live && !me.read_only;
  $('end').hidden = !acts;
  $('sender').hidden = !acts;
  $('keys').hidden = !acts;
  $('take').hidden = !acts || !job.has_terminal;
  drawHeld();
  drawQuestion();
}

let asked = '';
function drawQuestion() {
  const now = JSON.stringify([rank(), job.awaiting, job.questions]);
  if (now === asked) return;
  asked = now;
  $('question').replaceChildren(...(rank() === 'asks' ? [el('div', { class: 'ask' }, ...answers(job, me))] : []));
}

function drawHeld() {
  $('take').textContent = mine ? 'Give back' : 'Take over';
  $('take').className = mine ? 'quiet' : 'primary';
  $('screen').classList.toggle('mine', mine);
  $('held').className = mine ? 'held mine' : 'held';
  $('held').textContent = mine ? 'You have the keyboard, and agents are told so; Ctrl-] leaves it' : job.held_by ? `Held by ${job.held_by}` : '';
}

// Facts that an event may have changed are asked for again, once for a burst.
let asking = null;
function refresh() {
  if (asking) return;
  asking = setTimeout(async () => {
    asking = null;
    try {
      job = await call('job', { job: name });
    } catch (error) {
      if (error.status) toast(error.message, error.hint);
      return;
    }
    if (mine && !job.held_by && job.live) setMine(false, 'The job was given back: nothing was typed for a while.');
    drawFacts();
  }, 120);
}

function open(history) {
  // A job on pipes has no terminal: that it printed something is all that is told.
  if (!job.has_terminal && me.visitor === 'owner') { socket?.send({ t: 'tiles', jobs: [name] }); return; }
  if (!view) return;
  channel = (channel + 1) % 65536;
  socket?.send({ t: 'open', job: name, channel, bytes: view.usesBytes(), history: history || !view.whole, size: mine ? view.ownSize() : null });
}

function setMine(to, why) {
  mine = to;
  view.setMine(to);
  drawHeld();
  open(false);
  if (why) toast(why);
}

async function take(on) {
  if (on === mine) return;
  if (!(await tryCall('hold', { job: name, take: on }))) return;
  say(on ? 'You have taken over' : 'You have given it back');
  setMine(on);
  refresh();
}

const handlers = {
  keys: (data) => socket.send({ t: 'keys', job: name, data }),
  paste: (text) => tryCall('send', { job: name, text, paste: true }),
  resized: () => open(false),
  // Without a mouse this leads out of the terminal, as out of `outlast attach`.
  leave: () => $('take').focus(),
  untaken: () => {
    if ($('take').hidden) return;
    $('held').textContent = 'Take over to type here';
    say('Take over to type here');
  },
};

function said(message) {
  if (message.t === 'refused') { toast(message.error.message, message.error.hint); refresh(); }
  if (message.channel !== undefined && message.channel !== null && message.channel !== channel) return;
  if (message.t === 'size') {
    view?.setSize(message.size);
    $('size').textContent = message.size ? `${message.size.cols}×${message.size.rows}` : '';
  }
  if (message.t === 'rows') {
    transcript?.changed();
    timeline?.changed();
    view?.change(message);
    $('size').textContent = message.size ? `${message.size.cols}×${message.size.rows}` : '';
  }
  if (message.t === 'event') { refresh(); timeline?.changed(); }
  if (message.t === 'over') { over = true; mine = false; view?.setMine(false); refresh(); transcript?.changed(); }
}

$('take').addEventListener('click', () => take(!mine));
$('end').addEventListener('click', async () => {
  if (await confirm({ title: 'End this job?', text: 'The command and all that it started get a signal to end.', body: job.command, yes: 'End it', danger: true })) await tryCall('kill', { job: name });
  refresh();
});
$('sender').addEventListener('submit', async (event) => {
  event.preventDefault();
  const text = $('line').value;
  if (await tryCall('send', { job: name, text, enter: true })) $('line').value = '';
});
$('keys').append(...KEYS.map(([label, keys, spoken]) => el('button', { type: 'button', 'aria-label': spoken, onclick: () => tryCall('send', { job: name, keys }) }, label)));
$('find').addEventListener('input', () => view?.find($('find').value));
$('find').addEventListener('keydown', (event) => { if (event.key === 'Enter') view?.find($('find').value, event.shiftKey); });

const TABS = ['terminal', 'transcript', 'timeline'];
let transcript = null;
let timeline = null;
function showTab(to) {
  for (const tab of TABS) {
    $(tab).hidden = tab !== to;
    $(`tab-${tab}`).setAttribute('aria-selected', String(tab === to));
    $(`tab-${tab}`).tabIndex = tab === to ? 0 : -1;
  }
  if (to === 'transcript') { transcript ??= new Transcript($('transcript'), name); transcript.shown(); }
  if (to === 'timeline') { timeline ??= new Timeline($('timeline'), name, () => [...(rail?.jobs.values() ?? [])]); timeline.shown(); }
}
for (const tab of TABS) {
  $(`tab-${tab}`).addEventListener('click', () => showTab(tab));
  $(`tab-${tab}`).addEventListener('keydown', (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = TABS[(TABS.indexOf(tab) + step + TABS.length) % TABS.length];
    showTab(next);
    $(`tab-${next}`).focus();
  });
}

me = await hello();
if (me) {
  try {
    job = await call('job', { job: name });
  } catch (error) {
    // Who is not known any more was told so.
    if (error.status !== 401) $('main').replaceChildren(el('div', { class: 'empty' }, el('h2', {}, 'This job is not here'), el('p', {}, error.message)));
  }
}
if (job) {
  if (me.visitor === 'guest') {
    $('tab-transcript').hidden = true;
    $('tab-timeline').hidden = true;
    document.querySelector('.brand').removeAttribute('href');
  }
  drawFacts();
  if (!job.has_terminal && me.visitor === 'owner') { $('tab-terminal').hidden = true; showTab('transcript'); }
  else {
    view = await makeTerminal($('screen'), me.visitor === 'guest' ? 'rows' : me.terminal, handlers);
    view.setSize(job.size);
  }
  document.documentElement.dataset.terminal = view ? (view.usesBytes() ? 'xterm.js' : 'rows') : 'none';
  // For tests and the console: what the terminal shows, as text.
  window.outlast = { rows: () => view.plainRows(), mine: () => mine, parsed: (tell) => view.term?.onWriteParsed(tell) };
  rail = me.visitor === 'owner' ? new Rail($('rail'), name) : null;
  let first = true;
  socket = new Socket({
    opened: (opened) => { socket = opened; open(first || !mine); first = false; refresh(); if (rail) opened.send({ t: 'jobs' }); },
    said: (message) => (message.t === 'jobs' ? rail?.changed(message, drawFacts) : said(message)),
    bytes: (frame) => { if (frame.channel === channel) { view.frame(frame); transcript?.changed(); timeline?.changed(); } },
  });
  setInterval(() => { if (!document.hidden && !over) { drawFacts(); } }, 5000);
}
