import { isatty } from 'node:tty';
import pino, { type DestinationStream } from 'pino';

/** Once so many characters of lines have gathered, they are written. */
const writeAt = 16_384;

/** No line waits longer than this to be written, in milliseconds. */
const waitMs = 100;

/** The most characters that wait for a reader of the log: one that stands still costs lines, not all the memory. */
const maxWaiting = 64 * 1024 * 1024;

/** Where log lines go. */
export interface LogOutput extends DestinationStream {
  /** Writes what has gathered; calls back once all of it is written. */
  flush(done?: () => void): void;
}

/**
 * Standard output for log lines. They are written in large pieces and never in the event loop's own time: a write for
 * every few lines costs more than the lines, and a slow reader of the log holds up nobody. What has gathered when the
 * process exits is written then.
 */
export function standardOutput(): LogOutput {
  // It could gather lines by itself, but counts all that have gathered anew at every line: this is to write at once.
  const output = pino.destination({ dest: 1, sync: false, minLength: 1, maxLength: maxWaiting });
  // A full disk, or a terminal that is gone: the lines wait, within their bound, for a write that succeeds. Until one does,
  // nothing waits for them: at the exit it would be for ever.
  const { flushSync } = output;
  output.on('error', () => void Object.assign(output, { flushSync: () => undefined }));
  output.on('write', () => void Object.assign(output, { flushSync }));
  let lines = '';
  const pass = () => {
    if (lines !== '') output.write(lines);
    lines = '';
  };
  setInterval(pass, waitMs).unref();
  process.on('exit', () => {
    // From here on nothing is written that was not written at once.
    Object.assign(output, { sync: true });
    pass();
    output.flushSync();
  });
  return {
    write(line) {
      lines += line;
      if (lines.length >= writeAt) pass();
    },
    flush(done) {
      pass();
      // That a pipe can't be synced to a disk is no failure.
      output.flush(() => done?.());
    },
  };
}

/** How log lines look: readable text for a person, or JSON for a program. */
export type LogFormat = 'pretty' | 'json';

/** Standard output in the given format; without one, `pretty` on a terminal and `json` elsewhere. */
export function logOutput(format: LogFormat = isatty(1) ? 'pretty' : 'json'): LogOutput {
  const output = standardOutput();
  if (format === 'json') return output;
  return {
    write: (line) => output.write(readable(line)),
    flush: (done) => output.flush(done),
  };
}

interface LogLine {
  level: number;
  time: number;
  service?: string;
  msg?: string;
  [name: string]: unknown;
}

/**
 * A JSON log line as text: time (UTC), service, and for a request its method, route, status and milliseconds; for
 * anything else its level and message. What remains follows as `name=value`, and the stack of an error on lines of its own.
 */
export function readable(text: string): string {
  const { level, time, service = '', msg = '', err, ...fields } = JSON.parse(text) as LogLine;
  const head = `${new Date(time).toISOString().slice(11)} ${service}`;
  if (msg === 'request') {
    const { method = '-', route, status, ms, ...rest } = fields;
    const duration = ms === undefined ? '' : ` ${ms} ms`;
    return `${head} ${plain(method)} ${plain(route)} ${plain(status)}${duration}${named(rest)}\n`;
  }
  const name = (pino.levels.labels[level] ?? String(level)).toUpperCase();
  return `${head} ${name} ${plain(msg)}${named(fields)}\n${stackOf(err)}`;
}

/** A value on one line; JSON quotes control characters, which could move a terminal's cursor. */
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
