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
