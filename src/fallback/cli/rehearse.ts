import type { Command } from 'commander';

import type { RehearseOptions } from '../rehearse/rehearse.ts';

/** The exit code for wrong usage, and for a gateway that does not start. */
const wrongUse = 2;

/** The values of an option that may be given several times. */
const collected = (value: string, before: readonly string[] = []): string[] => [...before, value];

/** Adds the command that rehearses a file with the real gateway. */
export function addRehearse(program: Command, environment: NodeJS.ProcessEnv): void {
  program
    .command('rehearse')
    .description('run a gateway against fake providers, and compare its calls with what the chain of a file says')
    .requiredOption('--config <file>', 'the file: a configuration of LiteLLM or Portkey, or a chain in JSON or YAML')
    .option('--format <format>', 'the format of the file (default: detected), or the gateway for a chain (default: named by --run)')
    .option('--group <name>', 'for LiteLLM: the model group at which the chain starts')
    .option('--run <command>', 'the command that starts the gateway; {config} and {port} are filled in, without a shell')
    .option('--gateway <url>', 'the base URL of a running gateway instead, such as http://127.0.0.1:4000/v1')
    .option('--model <name>', 'the model that callers name (default: the first model group)')
    .option('--api-key-env <name>', 'the environment variable with the key of a running gateway')
    .option('--own', 'rehearse the file itself, with other addresses and keys (default for files of LiteLLM and Portkey)')
    .option('--no-own', 'rehearse the export of the imported chain')
    .option('--keep-state', 'keep cool-downs, and run the scenes one after the other')
    .option('--preset <name>', 'the scenes: coverage (default), healthy, primary_down, cascade, flap, blackout, streams')
    .option('--outage <outage>', "let a provider fail for a while: 'gpt-4o server_error 10-70', in seconds; repeatable", collected)
    .option('--rate <count>', 'with outages: the prompts of a minute (default: 60)')
    .option('--for <seconds>', 'with outages: how long prompts are sent (default: 120)')
    .option('--prompts <count>', 'how many scenes to run (default: all of the preset)')
    .option('--both', 'run each scene once with a streamed answer and once with a whole one (default)')
    .option('--stream', 'run the scenes with streamed answers alone')
    .option('--no-stream', 'run the scenes with whole answers alone')
    .option('--endpoint <name>', 'the API by which the gateway is called: chat (default), messages, responses')
    .option('--tools', 'send a tool, which the fake providers call')
    .option('--requests <file>', 'send the shapes of real requests: JSON Lines, of which texts and secrets are dropped')
    .option('--deadline <ms>', 'the longest duration of a scene')
    .option('--port <port>', 'the port of the fake providers (default: a free one)')
    .option('--token <digits>', 'the token in their addresses, 32 hexadecimal digits (default: random)')
    .option('--json', 'print the result as JSON')
    .addHelpText(
      'after',
      '\nExits with 0 if all tested scenes agree, 1 for a difference that no finding explains and if no failure was tested, 3 if findings explain all differences, 2 for wrong usage.',
    )
    .action(async ({ json, ...options }: RehearseOptions & { json?: true }) => {
      const [{ rehearse }, { RehearsalError }, { exitCodeOf, reportOf }] = await Promise.all([
        import('../rehearse/rehearse.ts'),
        import('../rehearse/program.ts'),
        import('../rehearse/report.ts'),
      ]);
      const interrupting = new AbortController();
      for (const signal of ['SIGINT', 'SIGTERM'] as const)
        process.once(signal, () => interrupting.abort(new RehearsalError(`Ended by ${signal}.`)));
      const isTerminal = process.stderr.isTTY === true;
      const listener = {
        onStep: (sentence: string) => console.error(sentence),
        onProgress(done: number, total: number) {
          if (isTerminal) process.stderr.write(`\r${done} of ${total} prompts${done === total ? '\n' : ''}`);
        },
      };
      try {
        const rehearsed = await rehearse(options, environment, listener, interrupting.signal);
        if (json)
          console.log(
            JSON.stringify(
              {
                ...rehearsed.result,
                explained: rehearsed.differences.map(({ because }) => because),
                notes: rehearsed.notes,
                program: rehearsed.program,
              },
              null,
              2,
            ),
          );
        else console.log(reportOf(rehearsed));
        process.exitCode = exitCodeOf(rehearsed);
      } catch (error) {
        if (!(error instanceof RehearsalError)) throw error;
        console.error(`fallback-service: ${error.message}`);
        process.exitCode = wrongUse;
      }
    });
}
