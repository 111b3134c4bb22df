import { Argument, type Command, InvalidArgumentError, Option } from 'commander';

import type { Answer } from '../../kit/client.ts';
import type { HandoffClient } from '../client/client.ts';
import { operations } from '../client/operations.ts';
import { type Context, createContext, type GlobalOptions, onCommandLine } from './context.ts';
import type { Show } from './output/show.ts';
import { CliError, type Terminal } from './terminal.ts';
import type { clientVariables } from './variables.ts';

/** How a value is completed: from fixed words, the ids of recent packets, or files. */
export type Completion = readonly string[] | 'packet' | 'file';

/** An option of a command, and the part of the request that it sets. */
export interface Flag {
  /** As in help: `-f, --file <file>`. */
  readonly flags: string;
  readonly text: string;
  /** The field of the query or body; by default the option's name with underscores. Null: it only changes what is shown. */
  readonly field?: string | null;
  /** The header that it sets, instead of a field. */
  readonly header?: string;
  readonly choices?: readonly string[];
  readonly completion?: Completion;
  readonly value?: unknown;
  readonly required?: true;
  /** It is secret: a warning says that the list of processes shows it, and `variable` is read instead if it is left out. */
  readonly secret?: {
    readonly what: string;
    readonly variable: keyof typeof clientVariables;
    /** Which values are secret; all by default. */
    readonly isSecret?: (value: string) => boolean;
  };
  readonly parse?: (text: string, before: never) => unknown;
}

/** The values of a command's options, by their names in camel case. */
export type Options = Readonly<Record<string, unknown>> & GlobalOptions;
/** The fields of a query or body. */
export type Fields = Readonly<Record<string, unknown>>;

interface Spec {
  /** The words of the command: `packets list`. */
  readonly name: string;
  /** Whether it is also a command without its first word. */
  readonly short?: true;
  readonly text: string;
  readonly flags?: readonly Flag[];
  /** The text after the options of its help. */
  readonly help?: string;
}

/** A command of the table. */
export interface Row extends Spec {
  /** Its operands, each with its explanation: the parameters of its operation's path, unless it names others. */
  readonly operands: readonly Operand[];
  readonly run: (context: Context, options: Options, ...operands: string[]) => Promise<void>;
  readonly hidden?: true;
}

interface Operand {
  readonly name: string;
  readonly text: string;
  readonly choices?: readonly string[];
  readonly variadic?: true;
  readonly optional?: true;
}

type OperationName = keyof typeof operations;
type BodyOf<Name extends OperationName> = Awaited<ReturnType<HandoffClient[Name]>>;

/** A command that sends one request: its operands and flags make the request, and `show` writes the answer. */
export function row<Name extends OperationName>(
  operation: Name,
  {
    body: fixed,
    prepare = (fields) => fields,
    show,
    operand,
    ...spec
  }: Spec & {
    /** Fields that are always sent. */
    readonly body?: Fields;
    /** An operand that is a field instead of a parameter of the path. */
    readonly operand?: Operand & { readonly field: string };
    readonly prepare?: (fields: Fields, context: Context) => Fields;
    readonly show: Show<BodyOf<Name>>;
  },
): Row {
  const { path, body }: { path: string; body?: true } = operations[operation];
  const parameters = [...path.matchAll(/(\w+?)s?\/\{(\w+)\}/g)].map(([, noun, name]) => ({
    noun: name === 'id' ? `${noun}_id` : name!,
    name: name!,
  }));
  return {
    ...spec,
    operands: [...parameters.map(({ noun }) => ({ name: noun, text: 'its id' })), ...(operand === undefined ? [] : [operand])],
    async run(context, options, ...operands) {
      const { fields, headers } = partsOf(spec.flags ?? [], options);
      const params = Object.fromEntries(parameters.map(({ name }, index) => [name, operands[index]]));
      const given = { ...fixed, ...fields, ...(operand === undefined ? {} : { [operand.field]: operands.at(-1) }) };
      const prepared = prepare(given, context);
      const request = { params, headers, [body ? 'body' : 'query']: prepared };
      const { withResponse } = (await context.client())[operation] as unknown as {
        withResponse: (request: object) => Promise<Answer<BodyOf<Name>>>;
      };
      await showAnswer(context, await withResponse(request), show, options);
    },
  };
}

/** Shows an answer. @throws CliError when it is not the answer of a handoff service */
export function showAnswer<Body>(context: Context, answer: Answer<Body>, show: Show<Body>, options: object = {}): Promise<void> {
  return reading(context, () => show(context, answer, options));
}

/** Runs code that uses an answer. @throws CliError when it fails: then no handoff service of this version sent the answer */
export async function reading<Result>(context: Context, use: () => Result): Promise<Result> {
  try {
    return use();
  } catch (error) {
    if (error instanceof CliError) throw error;
    const { serverUrl } = await context.config();
    throw new CliError(`${serverUrl} did not answer like a handoff service of this version.`, 1, {
      cause: error,
    });
  }
}

function partsOf(flags: readonly Flag[], options: Options): { fields: Record<string, unknown>; headers: Record<string, string> } {
  const fields: Record<string, unknown> = {};
  const headers: Record<string, string> = {};
  for (const flag of flags) {
    const name = optionOf(flag).attributeName();
    const value = options[name];
    if (value === undefined || flag.field === null) continue;
    if (flag.header === undefined) fields[flag.field ?? name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)] = value;
    else headers[flag.header] = String(value);
  }
  return { fields, headers };
}

/** The completion of each option and operand that has one. */
const completions = new WeakMap<Option | Argument, Completion>();
/** The completion of a value. */
export const completionOf = (part: Option | Argument): Completion => completions.get(part) ?? part.argChoices ?? [];

/** The options with the secrets that their variables have. @throws CliError when a required one is missing */
function withSecrets(flags: readonly Flag[], options: Options, { environment, say }: Context): Options {
  const found: Record<string, unknown> = { ...options };
  for (const flag of flags) {
    if (flag.secret === undefined) continue;
    const { what, variable, isSecret = () => true } = flag.secret;
    const { optional, long } = optionOf(flag);
    const name = optionOf(flag).attributeName();
    const given = found[name];
    if (typeof given === 'string' && isSecret(given)) say(onCommandLine(what, variable));
    // An option whose value may be left out reads the variable only when it is given.
    if (given !== (optional ? true : undefined)) continue;
    const inVariable = environment[variable] || undefined;
    if (inVariable === undefined && (flag.required || optional)) throw new CliError(`Give ${what} by ${long}, or ${variable}.`);
    if (inVariable !== undefined) found[name] = inVariable;
  }
  return found as Options;
}

function optionOf({ flags, text, choices, value, required, secret, parse, completion }: Flag): Option {
  const option = new Option(flags, required ? `${text} (required)` : text);
  if (choices !== undefined) option.choices(choices);
  if (parse !== undefined) option.argParser(parse as (text: string) => unknown);
  if (value !== undefined) option.default(value);
  if (required && secret === undefined) option.makeOptionMandatory();
  if (completion !== undefined) completions.set(option, completion);
  return option;
}

/** Adds a command of the table to its parent, and returns it. */
export function addRow(parent: Command, name: string, { text, flags = [], operands, help, hidden, run }: Row, terminal: Terminal): Command {
  const command = parent.command(name, { hidden: hidden ?? false }).description(text);
  for (const { name: operand, text: meaning, choices, variadic, optional } of operands) {
    const argument = new Argument(variadic ? `[${operand}...]` : optional ? `[${operand}]` : `<${operand}>`, meaning);
    if (choices !== undefined) argument.choices(choices);
    if (operand === 'packet_id') completions.set(argument, 'packet');
    if (operand === 'file') completions.set(argument, 'file');
    command.addArgument(argument);
  }
  for (const flag of flags) command.addOption(optionOf(flag));
  if (help !== undefined) command.addHelpText('after', help);
  command.action(async (...parts: unknown[]) => {
    const given = (parts.at(-1) as Command).optsWithGlobals<Options>();
    const context = createContext(given, terminal);
    await run(context, withSecrets(flags, given, context), ...(parts.slice(0, -2).flat() as string[]));
  });
  return command;
}

/** Makes a parser for a whole number from `least` to `most`. */
export const whole =
  (least: number, most: number) =>
  (text: string): number => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < least || value > most)
      throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
    return value;
  };

/** The parser of an option that can be repeated. */
export const several = (text: string, before: readonly string[] = []): string[] => [...before, text];

/** A command whose module only that command loads: each module takes a millisecond of every start. */
export const later =
  (load: () => Promise<Row['run']>): Row['run'] =>
  async (...given) =>
    (await load())(...given);
