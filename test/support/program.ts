import { type ChildProcess, spawn } from 'node:child_process';
import type { TestContext } from 'node:test';

/** A program that runs as a separate process. */
export interface Program {
  readonly child: ChildProcess;
  /** The whole lines of its standard output so far. */
  readonly lines: string[];
  /** The whole lines of its standard error so far. */
  readonly errors: string[];
  /** All of its standard output so far. */
  stdout(): string;
  /** All of its standard error so far. */
  readonly stderr: () => string;
  /** Resolves with the match of the first line of standard output that matches. Rejects if the program ends before. */
  readonly printed: (pattern: RegExp) => Promise<RegExpExecArray>;
  /** The same for standard error. */
  logged(pattern: RegExp): Promise<RegExpExecArray>;
  /** Resolves with the exit code once the program has ended and its output has arrived; null after a signal. */
  readonly ended: Promise<number | null>;
}

interface ProgramOptions {
  /** The test that the program ends after, by SIGKILL or `endBy`. */
  readonly t?: Pick<TestContext, 'after'>;
  readonly endBy?: NodeJS.Signals;
  readonly cwd?: string;
  /** The environment; by default that of the tests. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The standard input; by default empty. A program with `open` reads what is written to `child.stdin`. */
  readonly input?: string | { readonly open: true };
}

/** A stream of text: all of it, its whole lines, and who waits for one. */
function watch(stream: NodeJS.ReadableStream) {
  const lines: string[] = [];
  const onLine = new Set<(line: string) => void>();
  let text = '';
  let rest = '';
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
    const [first = '', ...others] = chunk.split('\n');
    const pieces = [rest + first, ...others];
    rest = pieces.pop()!;
    for (const line of pieces) {
      lines.push(line);
      for (const look of onLine) look(line);
    }
  });
  return { lines, onLine, text: () => text };
}

/** Starts a program. */
export function startProgram([command = '', ...args]: readonly string[], options: ProgramOptions = {}): Program {
  const { t, endBy = 'SIGKILL', cwd, env, input = '' } = options;
  const child = spawn(command, args, { ...(cwd === undefined ? {} : { cwd }), ...(env === undefined ? {} : { env }), stdio: 'pipe' });
  const [out, err] = [watch(child.stdout), watch(child.stderr)];
  // A program that ends without reading its input closes the pipe.
  child.stdin.on('error', () => undefined);
  if (typeof input === 'string') child.stdin.end(input);
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  // Who does not wait for the end still learns of a program that does not exist, by its output that never comes.
  ended.catch(() => undefined);
  t?.after(async () => {
    child.kill(endBy);
    await ended.catch(() => undefined);
  });
  const match = ({ lines, onLine }: typeof out, pattern: RegExp) =>
    new Promise<RegExpExecArray>((resolve, reject) => {
      const look = (line: string) => {
        const found = pattern.exec(line);
        if (found === null) return;
        onLine.delete(look);
        resolve(found);
      };
      onLine.add(look);
      for (const line of lines) look(line);
      ended.then(
        (code) => reject(new Error(`The program ended with ${code} before it said ${pattern}: ${out.text()}${err.text()}`)),
        reject,
      );
    });
  return {
    child,
    lines: out.lines,
    errors: err.lines,
    stdout: out.text,
    stderr: err.text,
    printed: (pattern) => match(out, pattern),
    logged: (pattern) => match(err, pattern),
    ended,
  };
}

/** Runs a program to its end. */
export async function runProgram(
  command: readonly string[],
  options: ProgramOptions = {},
): Promise<{ exitCode: number | null; stdout: string; stderr: string }> {
  const program = startProgram(command, options);
  const exitCode = await program.ended;
  return { exitCode, stdout: program.stdout(), stderr: program.stderr() };
}
