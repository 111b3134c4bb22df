/** What the command line takes from the process and its terminal. */
export interface Terminal {
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  /** The name of the user, where the system knows one. */
  userName(): string | undefined;
}

/** Why the program ends before its work is done: 1 the server refused or had nothing to give, 2 wrong usage, 3 the server is out of reach. */
export type ExitCode = 1 | 2 | 3;

/** Ends the program with a sentence for the person at the terminal. */
export class CliError extends Error {
  readonly exitCode: ExitCode;

  constructor(message: string, exitCode: ExitCode = 2) {
    super(message);
    this.exitCode = exitCode;
  }
}
