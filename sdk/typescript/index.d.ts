/** Outlast: commands as jobs that go on when the call, the agent or the terminal ends. */

/** What a wait waits for. */
export type Condition =
  | 'exit'
  | 'awaiting_input'
  | 'output'
  | { pattern: string }
  | { quiet: { ms: number } }
  | { stable: { checks: number; interval_ms: number } }
  | { port: number | null }
  | { http: { path: string; port: number | null; status: number | null } }
  | { gone: string };

/** The job has ended. */
export function exit(): Condition;
/** A regular expression matches what was printed from the start of the wait on. */
export function pattern(regex: string | RegExp): Condition;
/** The foreground program waits for input: known from the kernel, not from the text. */
export function awaitingInput(): Condition;
/** Nothing was printed for this long. */
export function quiet(ms: number): Condition;
/** The screen has not changed for some checks in a row. */
export function stable(checks?: number, intervalMs?: number): Condition;
/** The job, or a child of it, listens on this TCP port; none for any. */
export function port(number?: number | null): Condition;
/** A path on a port of the job answers; any status of 2xx unless told. */
export function http(path?: string, options?: { port?: number; status?: number }): Condition;
/** Anything was printed. */
export function output(): Condition;
/** A regular expression matches nothing on the screen. */
export function gone(regex: string | RegExp): Condition;

/** Something could not be done. `kind` is a word for programs, `hint` says what to do next. */
export class OutlastError extends Error {
  constructor(message: string, kind?: string, hint?: string);
  readonly kind: string;
  readonly hint: string | undefined;
}

export interface Size {
  cols: number;
  rows: number;
}

/** How a wait ended. */
export interface Waited {
  reason: string;
  offset: number;
  elapsedMs: number;
  already: boolean;
  match?: { pattern: number; text: string; groups: (string | null)[] };
  port?: number;
  awaitingInput?: { kind: string; level: string; prompt: string; evidence?: unknown };
  /** Nothing of what was waited for has come in time. */
  timedOut: boolean;
  /** The job has ended. */
  ended: boolean;
}

/** How a job ended. */
export interface Receipt {
  code?: number;
  signal?: string;
  endedBy?: string;
  endedAt: Date;
  error?: string;
  ok: boolean;
}

/** A job's record; `raw` has all of it. */
export interface JobInfo {
  handle: string;
  command: string;
  name?: string;
  cwd: string;
  session: string;
  status: 'queued' | 'starting' | 'running' | 'completed' | 'failed' | 'killed' | 'lost';
  receipt?: Receipt;
  raw: Record<string, unknown>;
}

/** What a terminal shows. */
export interface Screen {
  size: Size;
  rows: string[];
  scrollback?: string[];
  cursor: { row: number; col: number; visible: boolean };
  title: string;
  alternate: boolean;
  offset: number;
}

/** What became of something typed. What the job prints from `offset` on is the answer. */
export interface Sent {
  offset: number;
  taken: number;
  queued: number;
}

export interface OutputText {
  text: string;
  from: number;
  offset: number;
  omitted: [number, number] | null;
  lostBytes: number;
}

/** Something that happened to a job: `started`, `exit`, `awaiting_input`, `went_on`, `port` … */
export interface JobEvent {
  kind: string;
  seq: number;
  at: number;
  offset: number;
  [more: string]: unknown;
}

export interface WaitOptions {
  /** After this long it comes back with `timedOut`. */
  deadlineMs?: number;
  /** An offset in the output: patterns look from there on. Unless told, from the end now; 0 is everything. */
  from?: number;
  signal?: AbortSignal;
}

export interface RunOptions {
  name?: string;
  cwd?: string;
  /** What differs from the host's own environment; null removes a variable. */
  env?: Record<string, string | null>;
  size?: Size;
  /** Pipes instead of a terminal, stdout and stderr apart. */
  pipes?: boolean;
  description?: string;
  killAfterMs?: number;
  /** Comes back when one of these holds, or the job has ended; `job.waited` says which. */
  until?: Condition[];
  deadlineMs?: number;
  signal?: AbortSignal;
  /** Any other field of a job to be started: see docs/formats/requests.md. */
  more?: Record<string, unknown>;
}

/** A command in a shell, and what became of it. */
export interface Step {
  number: number;
  state: 'queued' | 'running' | 'ended' | 'not_run';
  code?: number;
  output: string;
  folder?: string;
  elapsedMs?: number;
  waited: Waited;
}

export interface StepOptions {
  /** Comes back when one of these holds, too. */
  until?: Condition[];
  /** For this command alone. */
  cwd?: string;
  /** For this command alone; null removes a variable. */
  env?: Record<string, string | null>;
  deadlineMs?: number;
  killAfterMs?: number;
  /** Refused while another command runs, instead of waiting for its turn. */
  ifIdle?: boolean;
  signal?: AbortSignal;
}

/** A shell with a name, made by its first command; it goes on when this program ends. */
export class Shell {
  readonly name: string;
  run(command: string, options?: StepOptions): Promise<Step>;
  /** The job that it is, made if there is none. */
  job(): Promise<Job>;
  kill(options?: { graceMs?: number }): Promise<void>;
}

export interface OutlastOptions {
  /** A host that this machine knows. */
  host?: string;
  /** Another folder of jobs than the user's. */
  home?: string;
  /** The program. */
  program?: string;
  /** Hides secrets in all that is read, and obeys the policy for agents. */
  agent?: boolean;
  session?: string;
}

/** Where the program is. */
export function findProgram(): string;

/** The jobs of this machine, or of a host that it knows. It runs `outlast relay`, which ends with `close()`; jobs go on. */
export class Outlast {
  constructor(options?: OutlastOptions);
  readonly host: string | undefined;
  readonly session: string;
  /** Starts a job. A string is a line for the shell, an array a program and its arguments. */
  run(command: string | string[], options?: RunOptions): Promise<Job>;
  /** A shell that remembers: folder, variables and functions stay from one command to the next. */
  shell(name?: string): Shell;
  find(job: number | string): Promise<Job>;
  jobs(options?: { running?: boolean; session?: string }): Promise<JobInfo[]>;
  /** Waits until the first of some jobs has met a condition (its end, unless told). */
  waitAny(
    jobs: Job[],
    until?: Condition[],
    options?: { deadlineMs?: number; from?: number[]; signal?: AbortSignal },
  ): Promise<{ job: Job; waited: Waited }>;
  /** Sends any request of docs/formats/requests.md, and returns the answer as it is. */
  request(request: Record<string, unknown>, options?: { signal?: AbortSignal }): Promise<any>;
  subscribe(to: Record<string, unknown>): Promise<AsyncIterableIterator<any>>;
  /** Ends the relay that was started. Jobs go on. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** One command and everything that it started. */
export class Job {
  /** Its number; `"gpu1/17"` on another host. */
  readonly handle: number | string;
  /** How the wait of `run(…, { until })` ended. */
  waited: Waited | undefined;
  /** Waits until one of the conditions holds, the job's end unless told; an end always ends it. */
  wait(until?: Condition[], options?: WaitOptions): Promise<Waited>;
  /** Types a text as it is, then perhaps Enter, keys (`'Ctrl-C'`, `'Down'`) and the end of the input. */
  send(text?: string | Uint8Array, options?: { enter?: boolean; keys?: string[]; eof?: boolean; paste?: boolean }): Promise<Sent>;
  sendLine(text?: string): Promise<Sent>;
  /** Types a line, waits until the program asks again (or for the conditions), and returns what it printed. */
  ask(text: string, until?: Condition[], options?: { deadlineMs?: number; signal?: AbortSignal }): Promise<string>;
  /** A range of the output as a person would have read it: head and tail within `max` bytes. */
  output(options?: { from?: number; to?: number; max?: number }): Promise<OutputText>;
  /** A range of the output as the bytes that were written. */
  readBytes(options?: { from?: number; to?: number; stderr?: boolean }): Promise<Buffer>;
  /** The output as it comes, from an offset on, until the job is over. */
  follow(options?: { from?: number }): AsyncGenerator<Buffer>;
  /** What happens to this job from now on, until it is over. */
  events(): AsyncGenerator<JobEvent>;
  screen(options?: { scrollback?: number }): Promise<Screen>;
  info(): Promise<JobInfo>;
  status(): Promise<Record<string, unknown> | null>;
  /** How it ended; none while it runs. */
  receipt(): Promise<Receipt | undefined>;
  /** Waits for its end, and says how it ended. */
  result(options?: { deadlineMs?: number; signal?: AbortSignal }): Promise<Receipt>;
  resize(size: Size): Promise<void>;
  /** Ends it and all that it started; SIGKILL for what is left after the grace. */
  kill(options?: { graceMs?: number }): Promise<Record<string, unknown>>;
  /** Sends one signal, such as `'INT'`, to the whole job. */
  signal(signal: string): Promise<Record<string, unknown>>;
  /** Removes it with its output, once it has ended. */
  remove(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}
