// Small helpers. Everything that a job says goes through textContent: output never becomes markup.

export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === 'class') node.className = value;
    else if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, '');
    else node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export const $ = (id) => document.getElementById(id);

export function ago(then, now = Date.now()) {
  if (now - then < 1000) return 'under 1 s';
  const seconds = Math.max(0, Math.round((now - then) / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} d`;
}

// With thousandths where the whole is short.
export function clock(ms, whole = Infinity) {
  if (whole < 10000) return `${(Math.floor(ms) / 1000).toFixed(3)} s`;
  const tenths = Math.floor(ms / 100);
  const two = (n) => String(n).padStart(2, '0');
  const [h, m, s] = [Math.floor(tenths / 36000), Math.floor(tenths / 600) % 60, Math.floor(tenths / 10) % 60];
  return `${h ? `${h}:` : ''}${h ? two(m) : m}:${two(s)}.${tenths % 10}`;
}

// A session that is only a process says nothing to a person.
export const sessionName = (session) => (/^(process|pid)-/.test(session) ? null : session);

export const folderName = (path) => path.replace(/\/+$/, '').split('/').slice(-2).join('/') || '/';

// In words, for a card or the head of a page.
export function stateWords(job) {
  const words = {
    approval: 'asks to run something', password: 'asks for a password', line: 'asks for a line', stdin: 'waits for its input', key: 'asks for a key',
    menu: 'waits for keys', pager: 'shows a pager', repl: 'at its prompt',
  };
  if (job.state === 'running' || job.state === 'starting') {
    if (job.stopped) return 'stopped';
    return job.awaiting ? words[job.awaiting.kind] ?? 'waits for input' : 'running';
  }
  if (job.state === 'queued') return job.queued ?? 'queued';
  if (job.state === 'completed') return 'done';
  return job.state === 'failed' && job.ending ? job.ending : job.ending ? `${job.state}: ${job.ending}` : job.state;
}

export function toast(message, hint, href) {
  const node = el('div', { class: 'toast' }, href ? el('a', { href }, message) : message, hint ? el('small', {}, hint) : null);
  $('toasts').append(node);
  setTimeout(() => node.remove(), 8000);
}

export function say(text) {
  $('live').textContent = text;
}

// A question of our own; resolves to whether the person agrees.
export function confirm({ title, text, body, yes = 'Yes', no = 'Cancel', danger = false }) {
  return new Promise((resolve) => {
    const dialog = el('dialog', { 'aria-labelledby': 'dialog-title' },
      el('h2', { id: 'dialog-title' }, title), text ? el('p', { class: 'muted' }, text) : null,
      body !== undefined ? el('pre', { tabindex: '0', 'aria-label': 'What is asked about' }, body) : null,
      el('div', { class: 'buttons' },
        el('button', { type: 'button', onclick: () => dialog.close('no') }, no),
        el('button', { type: 'button', class: danger ? 'danger' : 'primary', 'data-yes': '', onclick: () => dialog.close('yes') }, yes)));
    dialog.addEventListener('close', () => { dialog.remove(); resolve(dialog.returnValue === 'yes'); });
    document.body.append(dialog);
    dialog.showModal();
  });
}

// Links to what a job serves, under another host name than ours: a browser would send our cookie along otherwise.
export function portLink(port, host) {
  // One of another machine is not reached by a link of this one.
  if (host) return el('span', { class: 'port' }, `${host}:${port}`);
  const other = location.hostname === 'localhost' ? '127.0.0.1' : location.hostname === '127.0.0.1' ? 'localhost' : null;
  if (!other) return el('span', { class: 'port' }, `:${port}`);
  return el('a', { class: 'port', href: `http://${other}:${port}/`, target: '_blank', rel: 'noopener noreferrer', 'aria-label': `Open port ${port} in a new tab` }, `:${port}`);
}

const SVG = 'http://www.w3.org/2000/svg';
export function svg(tag, props = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(props)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}

export function themeButton() {
  const button = $('theme');
  const stroke = { fill: 'none', stroke: 'currentColor', 'stroke-width': '1.8', 'stroke-linecap': 'round', 'stroke-linejoin': 'round' };
  const draw = () => {
    const picture = svg('svg', { viewBox: '0 0 24 24', 'aria-hidden': 'true' });
    if (isDark()) {
      picture.append(svg('circle', { cx: 12, cy: 12, r: 4, ...stroke }), svg('path', { d: 'M12 2v2M12 20v2M4.9 4.9l1.4 1.4M17.7 17.7l1.4 1.4M2 12h2M20 12h2M4.9 19.1l1.4-1.4M17.7 6.3l1.4-1.4', ...stroke }));
    } else picture.append(svg('path', { d: 'M20 14.5A8 8 0 1 1 9.5 4a6.5 6.5 0 0 0 10.5 10.5Z', ...stroke }));
    button.replaceChildren(picture);
    button.setAttribute('aria-label', isDark() ? 'Light theme' : 'Dark theme');
  };
  button.addEventListener('click', () => {
    const next = isDark() ? 'light' : 'dark';
    document.documentElement.dataset.theme = next;
    localStorage.setItem('outlast-theme', next);
    draw();
  });
  draw();
}
