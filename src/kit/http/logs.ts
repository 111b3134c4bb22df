import { constants, fstatSync, openSync } from 'node:fs';
import { Socket } from 'node:net';
import { isatty } from 'node:tty';
import pino, { type DestinationStream, type Logger } from 'pino';
import { readJson } from '../json.ts';

/** Buffered lines are written when they reach this many characters. */
const writeAt = 16_384;

/** The longest time a line is buffered, in milliseconds. */
const waitMs = 100;

/** The most characters that wait for a reader of the log. Beyond it lines are dropped, so that memory stays bounded. */
const maxWaiting = 64 * 1024 * 1024;

/** A destination of log lines. */
interface LogOutput extends DestinationStream {
  /** Writes the buffered lines; calls back once all of them are written. */
  flush(done?: () => void): void;
}

/** Collects lines and passes them on in large texts. */
class LineBuffer implements LogOutput {
  readonly #write: (text: string) => void;
  readonly #flush: (done?: () => void) => void;
  #lines = '';

  /** @param flush called after all lines have been passed on */
  constructor(write: (text: string) => void, flush: (done?: () => void) => void) {
    this.#write = write;
    this.#flush = flush;
    setInterval(() => this.pass(), waitMs).unref();
  }

  pass(): void {
    if (this.#lines !== '') this.#write(this.#lines);
    this.#lines = '';
  }

  write(line: string): void {
    this.#lines += line;
    if (this.#lines.length >= writeAt) this.pass();
  }

  flush(done?: () => void): void {
    this.pass();
    this.#flush(done);
  }
}

/**
 * Standard output for log lines. Writes are large and asynchronous: a write for every few lines would cost more than the
 * lines themselves, and a slow reader must not block the event loop. Buffered lines are written when the process exits.
 */
function standardOutput(): LogOutput {
  const pipe = withoutBlocking();
  if (pipe !== undefined) return pipeOutput(pipe);
  // Its own buffering would recount all buffered lines at every line, so `minLength: 1` makes it write at once.
  const output = pino.destination({ dest: 1, sync: false, minLength: 1, maxLength: maxWaiting });
  // After a failed write (full disk, closed terminal) the lines wait, within their limit, for one that succeeds. Until
  // then `flushSync` is disabled, because it would wait forever at the exit.
  const flushSync = output.flushSync.bind(output);
  output.on('error', () => {
    Object.assign(output, { flushSync: () => undefined });
  });
  output.on('write', () => {
    Object.assign(output, { flushSync });
  });
  const lines = new LineBuffer(
    (text) => {
      output.write(text);
    },
    // A pipe can't be synced to disk; that error is ignored.
    (done) => output.flush(() => done?.()),
  );
  process.on('exit', () => {
    // From here on only synchronous writes complete.
    Object.assign(output, { sync: true });
    lines.pass();
    output.flushSync();
  });
  return lines;
}

/** How long a stop waits for the reader of a pipe, in milliseconds. */
const readWithinMs = 5_000;

/**
 * Standard output as a descriptor whose writes never block, if it is a pipe or a socket. A blocked write would hold a thread,
 * which Node waits for at its exit. A pipe is opened again, so that it stays as it is for other processes that write to it.
 */
function withoutBlocking(): number | undefined {
  try {
    const status = fstatSync(1);
    if (status.isSocket()) return 1;
    return status.isFIFO() ? openSync('/proc/self/fd/1', constants.O_WRONLY | constants.O_NONBLOCK) : undefined;
  } catch {
    // The system has no `/proc`, or standard output is closed.
    return undefined;
  }
}

/** Log lines to a pipe or socket. Lines that its reader has not read when the process exits are dropped. */
function pipeOutput(fd: number): LogOutput {
  const socket = new Socket({ fd, readable: false, writable: true });
  socket.unref();
  // The reader is gone.
  socket.on('error', () => undefined);
  const lines = new LineBuffer(
    (text) => {
      if (socket.writable && socket.writableLength < maxWaiting) socket.write(text);
    },
    (done) => {
      if (done === undefined) return;
      const late = setTimeout(done, readWithinMs);
      socket.write('', () => {
        clearTimeout(late);
        done();
      });
    },
  );
  // A write that the pipe has room for is complete when `write` returns.
  process.on('exit', () => lines.pass());
  return lines;
}

/** The format of log lines: readable text for people, or JSON for programs. */
export type LogFormat = 'pretty' | 'json';

/** Standard output in the given format; without one, `pretty` on a terminal and `json` elsewhere. */
function logOutput(format: LogFormat = isatty(1) ? 'pretty' : 'json'): LogOutput {
  const output = standardOutput();
  return format === 'json' ? output : { write: (line) => output.write(readable(line)), flush: (done) => output.flush(done) };
}

/** The logger of a service. Its lines go to standard output unless a destination is given. */
export function createLogger(
  service: string,
  { logLevel, logFormat }: { logLevel: string; logFormat: LogFormat | undefined },
  destination: DestinationStream = logOutput(logFormat),
): Logger {
  return pino({ level: logLevel, base: { service } }, destination);
}

/** Resolves once the lines of a logger are written. */
export const flushed = (logger: Logger): Promise<void> => new Promise((resolve) => logger.flush(() => resolve()));

interface LogLine {
  level: number;
  time: number;
  service?: string;
  msg?: string;
  [name: string]: unknown;
}

/**
 * Formats a JSON log line as text: time (UTC) and service, then for a request method, route, status and milliseconds, for
 * other lines level and message. Other fields follow as `name=value`; the stack of an error follows on its own lines.
 */
export function readable(text: string): string {
  const { level, time, service = '', msg = '', err, ...fields } = readJson(text) as LogLine;
  const head = `${new Date(time).toISOString().slice(11)} ${service}`;
  if (msg === 'request') {
    const { method = '-', route, status, ms, ...rest } = fields;
    const duration = ms === undefined ? '' : ` ${ms} ms`;
    return `${head} ${plain(method)} ${plain(route)} ${plain(status)}${duration}${named(rest)}\n`;
  }
  const name = (pino.levels.labels[level] ?? String(level)).toUpperCase();
  return `${head} ${name} ${plain(msg)}${named(fields)}\n${stackOf(err)}`;
}

/** A value on one line. Control characters, which could move a terminal's cursor, are escaped as JSON. */
function plain(value: unknown): string {
  return typeof value === 'string' && /^[\x21-\x7e]+( [\x21-\x7e]+)*$/.test(value) ? value : (JSON.stringify(value) ?? '');
}

function named(fields: Record<string, unknown>): string {
  return Object.entries(fields)
    .map(([name, value]) => ` ${name}=${plain(value)}`)
    .join('');
}

function stackOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return '';
  const { message, stack } = error as { message?: unknown; stack?: unknown };
  return String(stack || message)
    .split('\n')
    .map((line) => `    ${plain(line.trim())}\n`)
    .join('');
}
