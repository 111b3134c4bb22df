import type { UnknownVariables } from '../../kit/settings.ts';
import type { Writer } from './output/writer.ts';

/** The parts of the process that the command line uses. */
export interface Terminal {
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Standard input, opened when it is first read. */
  readonly stdin: () => AsyncIterable<Buffer | string>;
  /** Standard output: the answer, and nothing else. */
  readonly out: Writer;
  /** Standard error: messages, progress and questions. */
  readonly err: Writer;
  /** Whether a person reads and answers questions: standard input and standard error are a terminal. */
  readonly isInteractive: boolean;
  /** What `serve` warns of; left out: nothing. */
  readonly unknownVariables?: UnknownVariables;
}

/** Exit codes of failures: 1 the server refused the request or had no packet, 2 wrong usage, 3 the server is unreachable. */
export type ExitCode = 1 | 2 | 3;

/** An error that ends the program with a sentence for the user. */
export class CliError extends Error {
  readonly exitCode: ExitCode;

  constructor(message: string, exitCode: ExitCode = 2, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}
