import type { Command, Option } from 'commander';

import { Writer } from '../src/handoff/cli/output/writer.ts';
import { createProgram } from '../src/handoff/cli/program.ts';

/** The page about the command line, generated from its commands. */
export async function cliDocument(note: string): Promise<string> {
  const writer = new Writer(process.stdout, {});
  const program = createProgram({
    args: [],
    environment: {},
    stdin: () => process.stdin,
    out: writer,
    err: writer,
    isInteractive: false,
  });
  return `${note}
# The command line: \`service-cli\`

\`npx service-cli\` in a checkout, \`service-cli\` if the package is installed. Options of all commands, before or after the command:

${optionTable(program.options)}

A setting comes from its flag, else its variable, else \`$XDG_CONFIG_HOME/service/config.toml\` (\`~/.config/service/config.toml\`), else the default.
The file is TOML with the keys \`server_url\` and \`api_key\`.

Standard output has only the answer: a table, or with \`--format json\` the server's JSON (indented on a terminal). Messages, progress and \`--verbose\` go to standard error. On a terminal a
table is cut to its width. Colours are only used on terminals without \`NO_COLOR\`. \`--quiet\` prints only ids, or for a new key only the key.

| Exit code | Meaning |
| --- | --- |
| 0 | done |
| 1 | the server rejected the request, with its message on standard error; or \`packets next\` found no packet |
| 2 | wrong usage, or input that can't be read |
| 3 | no server answers |

${sectionsOf(program, 'service-cli')}`;
}

function sectionsOf(command: Command, path: string): string {
  return command
    .createHelp()
    .visibleCommands(command)
    .filter((one) => one.name() !== 'help')
    .map((one) => {
      const name = `${path} ${one.name()}`;
      if (one.commands.length > 0) return `## ${name}\n\n${sentence(one.description())}\n\n${sectionsOf(one, name)}`;
      const operands = one.registeredArguments.map((argument) => ` <${argument.name()}>`).join('');
      const options = one.options.length === 0 ? '' : `\n${optionTable(one.options)}\n`;
      return `${path.includes(' ') ? '###' : '##'} ${name}${operands.replaceAll('<', '&lt;').replaceAll('>', '&gt;')}\n\n${sentence(one.description())}\n${options}`;
    })
    .join('\n');
}

const sentence = (text: string) => `${text[0]!.toUpperCase()}${text.slice(1)}.`;

function optionTable(options: readonly Option[]): string {
  const rows = options.map(({ flags, description, argChoices, defaultValue }) => {
    const known = argChoices === undefined ? '' : ` One of ${argChoices.map((word) => `\`${word}\``).join(', ')}.`;
    const usual =
      defaultValue === undefined ? '' : ` Default: \`${typeof defaultValue === 'object' ? JSON.stringify(defaultValue) : defaultValue}\`.`;
    return `| \`${flags.replaceAll('|', '\\|')}\` | ${sentence(description)}${known}${usual} |`;
  });
  return ['| Option | Meaning |', '| --- | --- |', ...rows].join('\n');
}
