import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Command, Option } from 'commander';

import type { Context } from './context.ts';
import { type Completion, completionOf, type Row } from './rows.ts';
import { CliError } from './terminal.ts';

type Shell = keyof typeof scripts;
/** The line by which `complete` asks the script to complete files. */
const files = ':files';

/**
 * `completion <shell>` prints a script, or installs it; the script asks `complete` for the words that fit, so an
 * installed script needs no update when the commands change.
 */
export function completion(program: Command): readonly Row[] {
  return [
    {
      name: 'completion',
      text: 'print a completion script for a shell, or install it',
      operands: [{ name: 'shell', text: 'the shell', choices: Object.keys(scripts) }],
      flags: [{ flags: '--install', text: 'write the script into your home folder and have the shell read it when it starts' }],
      help: '\nTo use it once: bash  source <(service-cli completion bash)\n                zsh   source <(service-cli completion zsh)\n                fish  service-cli completion fish | source',
      async run(context, { install }, shell) {
        if (install) installScript(context, shell as Shell);
        else context.out.block(scripts[shell as Shell]);
      },
    },
    {
      name: 'complete',
      text: 'print the words that can follow; completion scripts call it',
      hidden: true,
      operands: [{ name: 'word', text: 'the words of the command line, the last one unfinished', variadic: true }],
      async run(context, _, ...words) {
        const current = words.at(-1) ?? '';
        const found = candidates(program, words);
        const all = found === 'packet' ? await recentPackets(context) : found === 'file' ? [files] : found;
        for (const word of all) if (word === files || word.startsWith(current)) context.out.line(word);
      },
    },
  ];
}

/** What can follow the words before the last one. */
function candidates(program: Command, words: readonly string[]): Completion {
  let command = program;
  let position = 0;
  let value: Option | undefined;
  for (const word of words.slice(0, -1)) {
    if (value !== undefined) value = undefined;
    else if (word.startsWith('-'))
      value = optionsOf(command).find((option) => option.required && [option.long, option.short].includes(word));
    else {
      const next = command.commands.find((one) => one.name() === word);
      if (next === undefined) position += 1;
      command = next ?? command;
    }
  }
  if (value !== undefined) return completionOf(value);
  if (words.at(-1)?.startsWith('-'))
    return [...optionsOf(command).flatMap(({ long, short }) => [long, short].filter((flag) => flag !== undefined)), '--help'];
  if (command.commands.length > 0)
    return command
      .createHelp()
      .visibleCommands(command)
      .map((one) => one.name());
  const argument = command.registeredArguments[position];
  return argument === undefined ? [] : completionOf(argument);
}

const optionsOf = (command: Command): readonly Option[] => [
  ...command.options,
  ...(command.parent === null ? [] : optionsOf(command.parent)),
];

async function recentPackets(context: Context): Promise<readonly string[]> {
  try {
    const { packets } = await (await context.client()).listPackets({ query: { limit: 50 }, timeoutSeconds: 2 });
    return packets.map(({ id }) => id);
  } catch {
    return []; // Nothing can show an error while a shell completes a word.
  }
}

/** Writes the script, and for bash and zsh a line that reads it into the file that the shell reads at its start. */
function installScript({ environment, say }: Context, shell: Shell): void {
  const { HOME: home } = environment;
  if (!home) throw new CliError('HOME is not set, so the script cannot be installed.');
  const config = environment.XDG_CONFIG_HOME || `${home}/.config`;
  const script =
    shell === 'fish'
      ? `${config}/fish/conf.d/service-cli.fish`
      : `${environment.XDG_DATA_HOME || `${home}/.local/share`}/service/completion.${shell}`;
  write(script, scripts[shell]);
  if (shell !== 'fish') {
    const startFile = shell === 'bash' ? `${home}/.bashrc` : `${environment.ZDOTDIR || home}/.zshrc`;
    const line = `[ -f '${script.replaceAll("'", "'\\''")}' ] && . '${script.replaceAll("'", "'\\''")}' # completion of service-cli`;
    // Its bytes stay as they are, whatever their encoding.
    const before = existsSync(startFile) ? readFileSync(startFile, 'latin1') : '';
    const known = before.split('\n').includes(Buffer.from(line).toString('latin1'));
    if (!known) write(startFile, `${before === '' || before.endsWith('\n') ? '' : '\n'}${line}\n`, appendFileSync);
    say(`${startFile} reads ${script} from now on.`);
  } else say(`fish reads ${script} from now on.`);
  say('Start a new shell to use it.');
}

function write(file: string, text: string, writeText: (file: string, text: string) => void = writeFileSync): void {
  try {
    mkdirSync(dirname(file), { recursive: true });
    writeText(file, text);
  } catch (error) {
    throw new CliError(`${file} can't be written (${(error as NodeJS.ErrnoException).code}).`);
  }
}

const heading = (shell: string) => `# Completion of service-cli for ${shell}, written by "service-cli completion ${shell}".`;

/** The script of each shell. For `npx service-cli`, bash and zsh complete it only if nothing else completes npx. */
const scripts = {
  bash: `${heading('bash')}
_service_cli() {
  local run=(service-cli) skip=1 cur="\${COMP_WORDS[COMP_CWORD]}"
  COMPREPLY=()
  if [[ \${COMP_WORDS[0]##*/} == npx ]]; then
    [[ \${COMP_WORDS[1]} == service-cli ]] && ((COMP_CWORD > 1)) || return 0
    run=(npx --no-install service-cli) skip=2
  fi
  mapfile -t COMPREPLY < <("\${run[@]}" complete -- "\${COMP_WORDS[@]:skip:COMP_CWORD-skip+1}" 2>/dev/null)
  if [[ \${COMPREPLY[0]} == '${files}' ]]; then
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
  fi
}
complete -o bashdefault -F _service_cli service-cli
complete -p npx &>/dev/null || complete -o bashdefault -o default -F _service_cli npx
`,
  zsh: `#compdef service-cli
${heading('zsh')}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
_service_cli() {
  local -a run=(service-cli) found
  local -i skip=2
  if [[ \${words[1]:t} == npx ]]; then
    if [[ \${words[2]} != service-cli ]] || (( CURRENT < 3 )); then _files; return; fi
    run=(npx --no-install service-cli) skip=3
  fi
  found=(\${(f)"$("\${run[@]}" complete -- "\${(@)words[skip,CURRENT]}" 2>/dev/null)"})
  if [[ \${found[1]} == '${files}' ]]; then _files; else compadd -- "\${found[@]}"; fi
}
compdef _service_cli service-cli
(( $+_comps[npx] )) || compdef _service_cli npx
`,
  fish: `${heading('fish')}
function __service_cli_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l run service-cli
    set -l first 2
    if test (basename -- $words[1]) = npx
        set run npx --no-install service-cli
        set first 3
    end
    set -l found ($run complete -- $words[$first..] 2>/dev/null)
    if test "$found[1]" = '${files}'
        __fish_complete_path (commandline -ct)
    else
        printf '%s\\n' $found
    end
end
function __service_cli_by_npx
    set -l words (commandline -opc)
    test (count $words) -gt 1; and test "$words[2]" = service-cli
end
complete -c service-cli -f -a '(__service_cli_complete)'
complete -c npx -f -n __service_cli_by_npx -a '(__service_cli_complete)'
`,
} as const;
