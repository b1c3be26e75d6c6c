// How the page comes in, asks, and is told.
import { $, confirm, el, toast } from './ui.js';

const KEY = 'outlast-key';

// What was in the fragment of the link is swapped for a cookie and a key, and is gone from the address before anything else happens.
async function enter() {
  const given = new URLSearchParams(location.hash.slice(1));
  const [ticket, share] = [given.get('ticket'), given.get('share')];
  if (!ticket && !share) return;
  history.replaceState(null, '', location.pathname);
  const response = await fetch('/api/enter', {
    method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(ticket ? { ticket } : { share }),
  });
  if (response.ok) sessionStorage.setItem(KEY, (await response.json()).key);
}

function outside(text) {
  document.querySelector('main').replaceChildren(el('div', { class: 'empty' }, el('h2', {}, text ?? 'This link is used up'),
    el('p', {}, 'A link gets one browser tab in, once. Get a new one in a terminal of this machine:'), el('code', {}, 'outlast web')));
  $('offline').hidden = true;
}

export class Refused extends Error {
  constructor(error, status) {
    super(error.message);
    Object.assign(this, error, { status });
  }
}

async function post(call) {
  const response = await fetch('/api', {
    method: 'POST', headers: { 'Content-Type': 'application/json', 'X-Outlast-Key': sessionStorage.getItem(KEY) ?? '' }, body: JSON.stringify(call),
  });
  if (response.status === 401) outside('You are not signed in');
  const isJson = response.headers.get('Content-Type') === 'application/json';
  const value = isJson ? await response.json() : { error: { message: await response.text() } };
  if (!response.ok) throw new Refused(value.error, response.status);
  return value;
}

// Asks. Where the policy wants a person to agree, the person is asked here, and the call is made again with what was shown.
export async function call(name, params = {}) {
  try {
    return await post({ call: name, ...params });
  } catch (error) {
    const shown = error.hint?.match(/^agree:([0-9a-f]{64})$/)?.[1];
    if (!shown || params.agreed) throw error;
    const agreed = await confirm({ title: 'The policy asks you', body: error.message, yes: 'Do it', danger: true });
    if (!agreed) throw new Refused({ message: 'Nothing was done: you did not agree.' }, 403);
    return call(name, { ...params, agreed: shown });
  }
}

export async function tryCall(name, params) {
  try {
    return await call(name, params);
  } catch (error) {
    toast(error.message, error.hint);
    return null;
  }
}

// Who we are to the server; null when we are nobody.
export async function hello() {
  await enter();
  if (!sessionStorage.getItem(KEY)) {
    outside();
    return null;
  }
  for (;;) {
    try {
      return await post({ call: 'hello' });
    } catch (error) {
      if (error.status) return null;
      $('offline').hidden = false;
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }
}

// One socket. It reconnects by itself; its users then say again what they want to see.
export class Socket {
  constructor({ opened, said, bytes }) {
    Object.assign(this, { opened, said, bytes, wait: 250 });
    this.connect();
  }

  connect() {
    const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
    const key = sessionStorage.getItem(KEY);
    this.socket = new WebSocket(`${scheme}://${location.host}/ws`, ['outlast.1', `outlast.key.${key}`]);
    this.socket.binaryType = 'arraybuffer';
    this.socket.addEventListener('open', () => {
      this.wait = 250;
      $('offline').hidden = true;
      this.opened(this);
    });
    this.socket.addEventListener('message', ({ data }) => {
      if (typeof data === 'string') this.said(JSON.parse(data));
      else {
        const view = new DataView(data);
        this.bytes?.({ kind: view.getUint8(0), channel: view.getUint16(2), offset: view.getBigUint64(4), bytes: new Uint8Array(data, 12) });
      }
    });
    this.socket.addEventListener('close', () => this.again());
  }

  async again() {
    $('offline').hidden = false;
    await new Promise((resolve) => setTimeout(resolve, this.wait));
    this.wait = Math.min(this.wait * 2, 5000);
    // A server that is gone answers nothing; one that does not know us any more says so.
    try {
      await post({ call: 'hello' });
    } catch (error) {
      if (error.status === 401) return;
    }
    this.connect();
  }

  send(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }
}
