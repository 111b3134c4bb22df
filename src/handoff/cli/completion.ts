import { Argument, type Command, type Option } from 'commander';

import { act } from './context.ts';
import { type Completion, completions } from './options.ts';
import type { Terminal } from './terminal.ts';

/** A command and its completions. */
interface Place {
  /** The names of the command and its parents, without the program. */
  readonly path: string;
  readonly description: string;
  readonly commands: readonly string[];
  readonly options: readonly { readonly flags: readonly string[]; readonly description: string; readonly value: Completion | undefined }[];
  /** The completion of its first argument. */
  readonly argument: Completion;
}

const shells = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;

/** `completion <shell>`: prints a script that completes commands, options and values, generated from the command tree. */
export function addCompletionCommand(program: Command, terminal: Terminal): void {
  const command = program
    .command('completion')
    .description('print a completion script for a shell')
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(shells)))
    .addHelpText(
      'after',
      '\nTo use it: bash  source <(service-cli completion bash)\n           zsh   source <(service-cli completion zsh)\n           fish  service-cli completion fish | source',
    );
  act(command, terminal, async ({ terminal: { stdout } }, _, shell) => {
    stdout.write(shells[shell as keyof typeof shells](placesOf(program)));
  });
}

/** Every command of the tree, the program itself first. */
function placesOf(command: Command, path: readonly string[] = [], inherited: readonly Option[] = []): Place[] {
  const options = [...command.options, ...inherited];
  const [argument] = command.registeredArguments;
  return [
    {
      path: path.join(' '),
      description: command.description(),
      commands: command.commands.map((one) => one.name()),
      options: [...options.map(optionOf), { flags: ['--help'], description: 'show help', value: undefined }],
      argument: argument?.argChoices ?? completions[argument?.name() ?? ''] ?? [],
    },
    ...command.commands.flatMap((one) => placesOf(one, [...path, one.name()], options)),
  ];
}

function optionOf(option: Option): Place['options'][number] {
  const flags = [option.short, option.long].filter((flag) => flag !== undefined);
  const value = option.required || option.optional ? (option.argChoices ?? completions[option.attributeName()] ?? []) : undefined;
  return { flags, description: option.description, value };
}

/** The branches of a shell's `case` that step from a command to its subcommands, by the current place and the next word. */
const steps = (places: readonly Place[]) =>
  places.filter(({ path }) => path !== '').map(({ path }) => `      '${path.includes(' ') ? path : ` ${path}`}') place='${path}' ;;`);

/** The branches that complete the values of options, by place and option. */
function valueCases(places: readonly Place[], reply: (completion: Completion) => string): string[] {
  const byReply = new Map<string, string[]>();
  for (const { path, options } of places) {
    for (const { flags, value } of options) {
      if (value === undefined) continue;
      const action = reply(value);
      byReply.set(action, [...(byReply.get(action) ?? []), ...flags.map((flag) => `'${path} ${flag}'`)]);
    }
  }
  return [...byReply].map(([action, patterns]) => `    ${patterns.join('|')}) ${action}; return ;;`);
}

function placeCases(places: readonly Place[], reply: (completion: Completion) => string): string[] {
  return places.map(({ path, commands, options, argument }) => {
    const flags = options.flatMap((option) => option.flags);
    const words = commands.length > 0 ? commands : argument;
    return `    '${path}') if [[ "$cur" == -* ]]; then ${reply(flags)}; else ${reply(words)}; fi ;;`;
  });
}

const recent = 'service-cli list --quiet --limit 50 2>/dev/null';
const note = (shell: string) => `# Completion of service-cli for ${shell}, written by "service-cli completion ${shell}".`;

function bashScript(places: readonly Place[]): string {
  const reply = (completion: Completion) => {
    if (completion === 'file') return 'mapfile -t COMPREPLY < <(compgen -f -- "$cur")';
    const words = completion === 'packet' ? `$(${recent})` : completion.join(' ');
    return words === '' ? 'COMPREPLY=()' : `mapfile -t COMPREPLY < <(compgen -W "${words}" -- "$cur")`;
  };
  return `${note('bash')}
_service_cli() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD - 1]}" place='' i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$place \${COMP_WORDS[i]}" in
${steps(places).join('\n')}
    esac
  done
  case "$place $prev" in
${valueCases(places, reply).join('\n')}
  esac
  case "$place" in
${placeCases(places, reply).join('\n')}
  esac
}
complete -o bashdefault -F _service_cli service-cli
`;
}

function zshScript(places: readonly Place[]): string {
  const reply = (completion: Completion) => {
    if (completion === 'file') return '_files';
    if (completion === 'packet') return `compadd -- \${(f)"$(${recent})"}`;
    return completion.length === 0 ? ':' : `compadd -- ${completion.join(' ')}`;
  };
  return `#compdef service-cli
${note('zsh')}
_service_cli() {
  local cur="\${words[CURRENT]}" prev="\${words[CURRENT-1]}" place='' i
  for ((i = 2; i < CURRENT; i++)); do
    case "$place \${words[i]}" in
${steps(places).join('\n')}
    esac
  done
  case "$place $prev" in
${valueCases(places, reply).join('\n')}
  esac
  case "$place" in
${placeCases(places, reply).join('\n')}
  esac
}
if [[ "\${funcstack[1]}" == _service_cli ]]; then _service_cli "$@"; else compdef _service_cli service-cli; fi
`;
}

function fishScript(places: readonly Place[]): string {
  const quoted = (text: string) => `'${text.replace(/[\\']/g, '\\$&')}'`;
  const values = (completion: Completion) => {
    if (completion === 'file') return ' -r -F';
    return ` -x -a ${quoted(completion === 'packet' ? '(__service_cli_packets)' : completion.join(' '))}`;
  };
  const lines = places.flatMap(({ path, commands, options, argument }) => {
    const at = `complete -c service-cli -n ${quoted(`__service_cli_at ${quoted(path)}`)}`;
    const flag = (text: string) => (text.startsWith('--') ? ` -l ${text.slice(2)}` : ` -s ${text.slice(1)}`);
    const nouns = commands.map((name) => {
      const { description = '' } = places.find((place) => place.path === [path, name].filter(Boolean).join(' ')) ?? {};
      return `${at} -f -a ${quoted(name)} -d ${quoted(description)}`;
    });
    const arguments_ = commands.length === 0 && argument.length > 0 ? [`${at} -f${values(argument)}`] : [];
    const flags = options.map(
      ({ flags: names, description, value }) =>
        `${at}${names.map(flag).join('')}${value === undefined ? '' : values(value)} -d ${quoted(description)}`,
    );
    return [...nouns, ...arguments_, ...flags];
  });
  return `${note('fish')}
set -g __service_cli_commands ${places
    .filter(({ path }) => path !== '')
    .map(({ path }) => quoted(path))
    .join(' ')}
function __service_cli_packets
    ${recent}
end
function __service_cli_at
    set -l place
    for word in (commandline -opc)[2..]
        set -l next (string trim -- "$place $word")
        contains -- $next $__service_cli_commands; and set place $next
    end
    test "$place" = "$argv[1]"
end
complete -c service-cli -f
${lines.join('\n')}
`;
}
