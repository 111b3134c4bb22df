import pino, { type DestinationStream } from 'pino';

/** Once so many characters of lines have gathered, they are written. */
const writeAt = 16_384;

/** No line waits longer than this to be written, in milliseconds. */
const waitMs = 100;

/**
 * Standard output for log lines. They are written in large pieces and never in the event loop's own time: a write for
 * every few lines costs more than the lines, and a slow reader of the log holds up nobody. What has gathered when the
 * process exits is written then.
 */
export function standardOutput(): DestinationStream & { flush(): void } {
  // It could gather lines by itself, but counts all that have gathered anew at every line.
  const output = pino.destination({ dest: 1, sync: false });
  let lines = '';
  const flush = () => {
    if (lines !== '') output.write(lines);
    lines = '';
  };
  setInterval(flush, waitMs).unref();
  process.on('exit', () => {
    flush();
    output.flushSync();
  });
  return {
    write(line) {
      lines += line;
      if (lines.length >= writeAt) flush();
    },
    flush,
  };
}
