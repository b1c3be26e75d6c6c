// Outlast: commands as jobs that go on when the call, the agent or the terminal ends. The types are in index.d.ts.

import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { createRequire } from 'node:module';
import { hostname, userInfo } from 'node:os';
import { Decoder, encode } from './frames.js';

/** A relay takes this many streams at once; one more, and another relay is started. */
const MAX_STREAMS = 1000;
const BYTES_PER_ANSWER = 256 << 10;
const MAX_TEXT = 1 << 20;

/** Something could not be done. `kind` is a word for programs, `hint` says what to do next. */
export class OutlastError extends Error {
  constructor(message, kind = 'system', hint = undefined) {
    super(hint ? `${message}; ${hint}` : message);
    this.name = 'OutlastError';
    this.kind = kind;
    this.hint = hint;
  }
}

export const exit = () => 'exit';
export const pattern = (regex) => ({ pattern: regex instanceof RegExp ? regex.source : regex });
export const awaitingInput = () => 'awaiting_input';
export const quiet = (ms) => ({ quiet: { ms } });
export const stable = (checks = 3, intervalMs = 1000) => ({ stable: { checks, interval_ms: intervalMs } });
export const port = (number = null) => ({ port: number });
export const http = (path = '/', options = {}) => ({ http: { path, port: options.port ?? null, status: options.status ?? null } });
export const output = () => 'output';
export const gone = (regex) => ({ gone: regex instanceof RegExp ? regex.source : regex });

/** The program: `$OUTLAST_PROGRAM`, that of the package for this machine, or the one on the PATH. */
export function findProgram() {
  if (process.env.OUTLAST_PROGRAM) return process.env.OUTLAST_PROGRAM;
  try {
    return createRequire(import.meta.url).resolve(`@outlast/${process.platform}-${process.arch}/bin/outlast`);
  } catch {
    // Not installed by npm.
  }
  for (const folder of (process.env.PATH ?? '').split(':')) {
    try {
      accessSync(`${folder}/outlast`, constants.X_OK);
      return `${folder}/outlast`;
    } catch {
      // Not there.
    }
  }
  throw new OutlastError('the program outlast was not found', 'usage', 'npm install outlast, or set OUTLAST_PROGRAM');
}

/** One relay: many requests at once, each on a stream of its own. */
class Connection {
  #child;
  #answers = new Map();
  #subscriptions = new Map();
  #lastStream = 0;
  #lost;
  #hello;
  #gone;

  get openStreams() {
    return this.#answers.size + this.#subscriptions.size;
  }

  get isLost() {
    return this.#lost !== undefined;
  }

  open([program, ...args]) {
    this.#child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'], detached: true });
    const decoder = new Decoder();
    this.#gone = new Promise((resolve) => this.#child.once('close', resolve));
    const greeted = new Promise((resolve, reject) => (this.#hello = { resolve, reject }));
    this.#child.on('error', (error) => this.#lose(new OutlastError(`cannot run ${program}: ${error.message}`)));
    this.#child.stdin.on('error', () => {});
    this.#child.stdout.on('data', (data) => {
      try {
        for (const message of decoder.push(data)) this.#take(message);
      } catch (error) {
        this.#lose(new OutlastError(error.message, 'connection'));
      }
    });
    this.#child.stdout.on('end', () => {
      const said = decoder.beforeMarker();
      this.#lose(new OutlastError(said ? `no relay answered, but: ${said}` : 'the relay has ended', 'connection', 'jobs go on; open it again'));
    });
    let user = '';
    try {
      user = userInfo().username;
    } catch {
      // A user without a name.
    }
    this.#send(0, 'hello', { frames: 1, oldest: 1, program: 'outlast-node', caller: { user, machine: hostname() } });
    return greeted;
  }

  #send(stream, kind, body) {
    if (this.#lost) throw this.#lost;
    this.#child.stdin.write(encode(stream, kind, Buffer.from(JSON.stringify(body))));
  }

  #lose(error) {
    this.#lost ??= error;
    this.#hello.reject(this.#lost);
    for (const { reject } of this.#answers.values()) reject(this.#lost);
    for (const subscription of this.#subscriptions.values()) subscription.put(this.#lost);
    this.#answers.clear();
    this.#subscriptions.clear();
  }

  #take({ stream, kind, body }) {
    const said = JSON.parse(body.toString() || 'null');
    if (kind === 'hello') {
      this.#hello.resolve(said);
    } else if (kind === 'answer') {
      this.#answers.get(stream)?.resolve(said);
      this.#answers.delete(stream);
    } else if (kind === 'failure') {
      const error = new OutlastError(said.message, said.kind, said.hint);
      if (stream === 0) return this.#lose(error);
      this.#answers.get(stream)?.reject(error);
      this.#answers.delete(stream);
      this.#subscriptions.get(stream)?.put(error);
      this.#subscriptions.delete(stream);
    } else if (kind === 'news') {
      this.#subscriptions.get(stream)?.put(said);
    }
    return undefined;
  }

  ask(body, signal) {
    signal?.throwIfAborted();
    const stream = ++this.#lastStream;
    this.#send(stream, 'request', body);
    return new Promise((resolve, reject) => {
      const give = () => {
        if (!this.#answers.delete(stream)) return;
        if (!this.isLost) this.#send(stream, 'cancel', {});
        reject(signal.reason);
      };
      const over = (then) => (value) => {
        signal?.removeEventListener('abort', give);
        then(value);
      };
      this.#answers.set(stream, { resolve: over(resolve), reject: over(reject) });
      signal?.addEventListener('abort', give, { once: true });
    });
  }

  /** What a subscriber is told, as an async iterator. */
  subscribe(body) {
    const stream = ++this.#lastStream;
    const news = [];
    let wake = () => {};
    const put = (one) => {
      news.push(one);
      wake();
    };
    const close = () => {
      if (this.#subscriptions.delete(stream) && !this.isLost) this.#send(stream, 'cancel', {});
    };
    this.#send(stream, 'subscribe', body);
    this.#subscriptions.set(stream, { put });
    return {
      async next() {
        while (news.length === 0) await new Promise((resolve) => (wake = resolve));
        const one = news.shift();
        if (one instanceof Error) throw one;
        if (one === 'over') {
          close();
          return { done: true, value: undefined };
        }
        return { done: false, value: one };
      },
      async return() {
        close();
        return { done: true, value: undefined };
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }

  async close() {
    this.#lost ??= new OutlastError('this Outlast was closed', 'connection');
    this.#child.stdin.end();
    await this.#gone;
  }
}

/** The jobs of this machine, or of a host that it knows. It runs `outlast relay`, which ends with `close()`; jobs go on. */
export class Outlast {
  #options;
  #connections = [];
  #opening;

  constructor(options = {}) {
    this.#options = options;
    this.host = options.host;
    this.session = options.session ?? process.env.OUTLAST_SESSION ?? '';
  }

  async #connection() {
    const free = () => this.#connections.find((one) => !one.isLost && one.openStreams < MAX_STREAMS);
    while (!free()) {
      // Those that ask at the same time share what one of them opens.
      this.#opening ??= this.#open().finally(() => (this.#opening = undefined));
      await this.#opening;
    }
    return free();
  }

  async #open() {
    const { program, home } = this.#options;
    const command = [program ?? findProgram(), ...(home ? ['--home', home] : []), 'relay', ...(this.host ? ['--hosts'] : [])];
    const connection = new Connection();
    await connection.open(command);
    this.#connections.push(connection);
  }

  #wrapped(body) {
    return { ...body, ...(this.#options.agent ? { masked: true } : {}), ...(this.host ? { host: this.host } : {}) };
  }

  /** Sends any request of docs/formats/requests.md, and returns the answer as it is. */
  async request(request, options = {}) {
    const connection = await this.#connection();
    return connection.ask(this.#wrapped({ ask: request }), options.signal);
  }

  async subscribe(to) {
    const connection = await this.#connection();
    return connection.subscribe(this.#wrapped({ to }));
  }

  /** Starts a job. A string is a line for the shell, an array a program and its arguments. */
  async run(command, options = {}) {
    const { name, cwd, env, size = { cols: 120, rows: 40 }, pipes = false, description, killAfterMs, until, deadlineMs, signal, more } = options;
    const here = this.host ? undefined : process.cwd();
    const spec = {
      run: typeof command === 'string' ? { shell: command } : { program: command },
      streams: pipes ? 'pipes' : { terminal: size },
      session: this.session,
      for_agent: this.#options.agent ?? false,
      name,
      cwd: cwd ?? here,
      env,
      description,
      timeout_ms: killAfterMs,
      ...more,
    };
    const answer = await this.request({ request: 'start', ...spec });
    const job = new Job(this, answer.started);
    if (until) job.waited = await job.wait(until, { from: 0, deadlineMs, signal });
    return job;
  }

  /** A shell that remembers: folder, variables and functions stay from one command to the next. */
  shell(name = 'main') {
    return new Shell(this, name);
  }

  async find(job) {
    const answer = await this.request({ request: 'find', job: String(job) });
    return new Job(this, answer.found);
  }

  async jobs(options = {}) {
    const answer = await this.request({ request: 'list', running: options.running ?? false, session: options.session ?? null });
    return answer.jobs.map(({ job }) => info(job));
  }

  /** Waits until the first of some jobs has met a condition (its end, unless told). */
  async waitAny(jobs, until = [exit()], options = {}) {
    const { deadlineMs = null, from = [], signal } = options;
    const waits = jobs.map((job, n) => ({ job: job.handle, wait: { until, from: from[n] ?? null } }));
    const answer = await this.request({ request: 'wait', waits, timeout_ms: deadlineMs }, { signal });
    const { which, waited } = answer.waited;
    return { job: jobs[which], waited: asWaited(waited) };
  }

  async close() {
    await this.#opening?.catch(() => {});
    await Promise.all(this.#connections.splice(0).map((connection) => connection.close()));
  }

  async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
    await this.close();
  }
}

/** A shell with a name, made by its first command; it goes on when this program ends. */
export class Shell {
  #outlast;

  constructor(outlast, name) {
    this.#outlast = outlast;
    this.name = name;
  }

  /** Runs a command in it; comes back when it has ended, a condition holds, or the deadline is up. */
  async run(command, options = {}) {
    const { until = [], cwd, env, deadlineMs = null, killAfterMs, ifIdle = false, signal } = options;
    const order = { ask: 'step', command, folder: cwd, env, timeout_ms: killAfterMs, if_idle: ifIdle, session: this.#outlast.session };
    const step = async (job) => (await this.#outlast.request({ request: 'job', job: job.handle, ask: order })).step;
    let job = await this.job();
    let begun;
    try {
      begun = await step(job);
    } catch (error) {
      if (error.kind !== 'not_running') throw error;
      // It ended meanwhile: the next command makes it anew.
      job = await this.#start();
      begun = await step(job);
    }
    const wait = { until: [...until, exit()], from: begun.from, step: begun.step };
    const request = { request: 'wait', waits: [{ job: job.handle, wait }], timeout_ms: deadlineMs };
    const { waited } = (await this.#outlast.request(request, { signal })).waited;
    const now = waited.step ?? begun;
    const { text } = await job.output({ from: now.from, to: now.to });
    return { number: now.step, state: now.state, code: now.exit_code, output: text, folder: now.folder, elapsedMs: now.took_ms, waited: asWaited(waited) };
  }

  /** The job that it is, made if there is none. */
  async job() {
    const { found_shell: found } = await this.#outlast.request({ request: 'find_shell', scope: this.#outlast.session, name: this.name });
    return found === null ? this.#start() : new Job(this.#outlast, found);
  }

  #start() {
    const shell = { name: this.name, scope: this.#outlast.session, kind: 'bash' };
    return this.#outlast.run(['bash'], { more: { shell, shown_as: `shell ${this.name}`, notify: ['exit'] } });
  }

  async kill(options = {}) {
    await (await this.job()).kill(options);
  }
}

/** One command and everything that it started. */
export class Job {
  #outlast;

  constructor(outlast, handle) {
    this.#outlast = outlast;
    this.handle = handle;
    this.waited = undefined;
  }

  async #ask(ask, fields = {}, options = {}) {
    const answer = await this.#outlast.request({ request: 'job', job: this.handle, ask: { ask, ...fields } }, options);
    return Object.values(answer)[0];
  }

  /** Waits until one of the conditions holds, the job's end unless told; an end always ends it. */
  async wait(until = [exit()], options = {}) {
    const { from, deadlineMs, signal } = options;
    const answer = await this.#outlast.waitAny([this], until, { deadlineMs, signal, from: from === undefined ? [] : [from] });
    return answer.waited;
  }

  /** Types a text as it is, then perhaps Enter, keys (`'Ctrl-C'`, `'Down'`) and the end of the input. */
  async send(text = '', options = {}) {
    const { enter = false, keys = [], eof = false, paste } = options;
    const what = typeof text === 'string' ? { text } : { bytes: Buffer.from(text).toString('base64') };
    return this.#ask('send', { send: { ...what, newline: enter, keys, eof, paste, session: this.#outlast.session } });
  }

  async sendLine(text = '') {
    return this.send(text, { enter: true });
  }

  /** Types a line, waits until the program asks again (or for the conditions), and returns what it printed. */
  async ask(text, until = [awaitingInput()], options = {}) {
    const { deadlineMs = 60_000, signal } = options;
    const sent = await this.sendLine(text);
    const waited = await this.wait(until, { from: sent.offset, deadlineMs, signal });
    if (waited.timedOut) throw new OutlastError(`job ${this.handle} has not answered in ${deadlineMs} ms`, 'deadline');
    return (await this.output({ from: sent.offset })).text;
  }

  /** A range of the output as a person would have read it: head and tail within `max` bytes. */
  async output(options = {}) {
    const { from = 0, to = null, max = MAX_TEXT } = options;
    const said = await this.#ask('read_text', { from, to, max });
    const { head = '', tail = '', omitted = null } = said;
    const left = omitted ? `\n[... ${omitted[1] - omitted[0]} bytes left out ...]\n` : '';
    return { text: head + left + tail, from: said.from, offset: said.offset, omitted, lostBytes: said.lost_bytes ?? 0 };
  }

  /** A range of the output as the bytes that were written. */
  async readBytes(options = {}) {
    let { from = 0, to = null } = options;
    const stream = options.stderr ? 'stderr' : 'output';
    const pieces = [];
    for (;;) {
      const said = await this.#ask('read_bytes', { stream, from, to, max: BYTES_PER_ANSWER });
      pieces.push(...bytesOf(said.parts));
      if (said.next >= said.end || said.parts.length === 0) return Buffer.concat(pieces);
      [from, to] = [said.next, said.end];
    }
  }

  /** The output as it comes, from an offset on, until the job is over. */
  async *follow(options = {}) {
    const news = await this.#outlast.subscribe({ subscribe: 'job', job: this.handle });
    let at = options.from ?? 0;
    try {
      for (;;) {
        const said = await this.#ask('read_bytes', { from: at, max: BYTES_PER_ANSWER });
        at = said.next;
        const data = Buffer.concat(bytesOf(said.parts));
        if (data.length) yield data;
        if (said.next < said.end) continue;
        let told;
        do {
          told = await news.next();
        } while (!told.done && !(told.value.grown?.offset > at));
        if (told.done) {
          const rest = await this.readBytes({ from: at });
          if (rest.length) yield rest;
          return;
        }
      }
    } finally {
      await news.return();
    }
  }

  /** What happens to this job from now on, until it is over. */
  async *events() {
    const news = await this.#outlast.subscribe({ subscribe: 'job', job: this.handle });
    for await (const told of news) if (told.event) yield { ...told.event, kind: told.event.event };
  }

  async screen(options = {}) {
    return this.#ask('screen', { scrollback: options.scrollback ?? 0 });
  }

  async info() {
    return info(await this.#ask('info', { shown: true }));
  }

  async status() {
    return this.#ask('status');
  }

  /** How it ended; none while it runs. */
  async receipt() {
    return receipt(await this.#ask('receipt'));
  }

  /** Waits for its end, and says how it ended. */
  async result(options = {}) {
    const waited = await this.wait([exit()], options);
    const ended = waited.timedOut ? undefined : await this.receipt();
    if (!ended) throw new OutlastError(`job ${this.handle} has not ended`, 'deadline');
    return ended;
  }

  async resize(size) {
    await this.#ask('resize', { size });
  }

  /** Ends it and all that it started; SIGKILL for what is left after the grace. */
  async kill(options = {}) {
    return this.#ask('kill', { grace_ms: options.graceMs ?? 5000, session: this.#outlast.session });
  }

  async signal(signal) {
    return this.#ask('signal', { signal, session: this.#outlast.session });
  }

  async remove() {
    await this.#outlast.request({ request: 'remove', job: this.handle });
  }

  /** `await using job = …` ends it with the block. */
  async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
    await this.kill();
  }
}

function asWaited(said) {
  const match = said.match ? { pattern: said.match.pattern, text: said.match.text, groups: said.match.captures } : undefined;
  return {
    reason: said.reason,
    offset: said.offset,
    elapsedMs: said.elapsed_ms,
    already: said.already ?? false,
    match,
    port: said.port,
    awaitingInput: said.awaiting_input,
    timedOut: said.reason === 'deadline',
    ended: said.reason === 'exit',
  };
}

function receipt(said) {
  if (!said) return undefined;
  const { code, signal, ended_by: by, ended_at: at, error } = said;
  return { code, signal, endedBy: by?.who, endedAt: new Date(at), error: error?.message, ok: code === 0 };
}

function info(said) {
  // In a list the state is a part of its own.
  const state = said.state ?? said;
  const ended = state.ended_by ? receipt(state) : undefined;
  const { handle, command, name, cwd, session } = said;
  return { handle: String(handle), command, name, cwd, session, status: state.status, receipt: ended, raw: said };
}

function bytesOf(parts) {
  return parts.filter((part) => part.bytes !== undefined).map((part) => Buffer.from(part.bytes, 'base64'));
}
