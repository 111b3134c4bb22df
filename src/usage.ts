import type { Command, CommanderError } from 'commander';

/** Makes a program name the first surplus word of a command line, which commander only counts. Its subcommands do the same. */
export function refuseSurplusWords(program: Command): Command {
  return program.allowExcessArguments().hook('preAction', (_, command) => {
    const { registeredArguments, args } = command;
    const surplus = registeredArguments.at(-1)?.variadic ? undefined : args[registeredArguments.length];
    if (surplus !== undefined) command.error(`error: unexpected argument '${surplus}'`, { code: 'commander.excessArguments' });
  });
}

/** Ends the process with 2 at a usage error, and with 0 after help. For `exitOverride`. */
export function exitForUsage({ exitCode }: CommanderError): never {
  process.exit(exitCode === 0 ? 0 : 2);
}
