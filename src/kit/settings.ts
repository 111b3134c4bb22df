import { parse as parseToml } from 'smol-toml';
import { commaList } from './comma-list.ts';
import { readText } from './text-file.ts';

/** A row of a table of settings. */
export interface Setting<T> {
  /** The environment variable. A setting without one comes from a flag or the settings file. */
  readonly variable?: string;
  /** The default, written as a user would write it; undefined for none. */
  readonly fallback: string | undefined;
  readonly help: string;
  readonly flag?: string;
  /** Returns the value of a text, or throws an Error whose message completes "NAME must be ...". */
  parse(text: string): T;
  /** Reads the setting from a TOML table, if it may be one; throws like `parse`. */
  readonly parseTable?: (table: Readonly<Record<string, unknown>>) => T;
}

/** The settings of a program, by their name in code. */
export type SettingsTable = Record<string, Setting<unknown>>;

/** The values of a table of settings. A setting without a default may be undefined. */
export type SettingsOf<Table extends SettingsTable> = {
  readonly [Name in keyof Table]: ReturnType<Table[Name]['parse']> | (Table[Name]['fallback'] extends undefined ? undefined : never);
};

/** All problems of the settings, one line each. */
export class SettingsError extends Error {
  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.name = 'SettingsError';
  }
}

interface Sources {
  /** Values by the names of the table. */
  flags?: Record<string, string | undefined>;
  environment?: Record<string, string | undefined>;
  /** The path of a TOML file. */
  file?: string | undefined;
}

/**
 * Reads all settings of the table. A flag has precedence over the environment, then the file, then the default.
 * @throws SettingsError that lists all problems
 */
export function readSettings<Table extends SettingsTable>(
  table: Table,
  { flags = {}, environment = {}, file }: Sources,
): SettingsOf<Table> {
  const problems: string[] = [];
  const inFile = file === undefined ? {} : readFile(file, table, problems);
  const values: Record<string, unknown> = {};

  for (const [name, setting] of Object.entries(table)) {
    const candidates: readonly (readonly [Given | undefined, string])[] = [
      [flags[name], setting.flag ?? name],
      // Shells and compose files set an empty variable to mean "not set".
      [(setting.variable && environment[setting.variable]) || undefined, setting.variable ?? name],
      [inFile[fileKey(setting)], `${fileKey(setting)} in ${file}`],
      [setting.fallback, setting.variable ?? name],
    ];
    const [value, source] = candidates.find(([given]) => given !== undefined) ?? [];
    if (value === undefined) continue;
    try {
      values[name] = typeof value === 'string' ? setting.parse(value) : parseTable(setting, value);
    } catch (error) {
      problems.push(`${source} must be ${(error as Error).message}`);
    }
  }
  if (problems.length > 0) throw new SettingsError(problems);
  return values as SettingsOf<Table>;
}

/** The name of a setting in the TOML file: its variable in lower case without `SERVICE_`, or its flag with underscores. */
export function fileKey(setting: Setting<unknown>): string {
  const { variable, flag = '' } = setting;
  return variable?.replace(/^SERVICE_/, '').toLowerCase() ?? flag.replace(/^--/, '').replaceAll('-', '_');
}

/** The raw value of a setting: a text, or a table of the settings file. */
type Given = string | Readonly<Record<string, unknown>>;

function parseTable<T>({ parseTable: parse }: Setting<T>, table: Readonly<Record<string, unknown>>): T {
  if (parse === undefined) throw new Error('a single value, not a table');
  return parse(table);
}

function readFile(file: string, table: SettingsTable, problems: string[]): Record<string, Given> {
  try {
    const document = parseToml(readText(file));
    const known = new Set(Object.values(table).map(fileKey));
    for (const key of Object.keys(document)) {
      if (!known.has(key)) problems.push(`${file} has a setting that does not exist: ${key}`);
    }
    return Object.fromEntries(Object.entries(document).map(([key, value]) => [key, isTable(value) ? value : String(value)]));
  } catch (error) {
    problems.push(`The settings file ${file} could not be read: ${(error as Error).message.split('\n')[0]}`);
    return {};
  }
}

/** Whether a TOML value is a table. An array is not: it becomes a comma-separated list. */
function isTable(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

/** Any text. */
export const text = (value: string): string => value;

/** The content of the file at a path, without space around it. */
export function fileText(path: string): string {
  try {
    return readText(path).trim();
  } catch (error) {
    throw new Error(`the path of a file that can be read: ${(error as Error).message.split('\n')[0]}`);
  }
}

/** A text without a problem. For an invalid one, `check` returns the end of the sentence "NAME must be ...". */
export function checked(check: (value: string) => string | undefined) {
  return (value: string): string => {
    const problem = check(value);
    if (problem !== undefined) throw new Error(problem);
    return value;
  };
}

/** A whole number from `least` to `most`. */
export function whole(least = 0, most = Number.MAX_SAFE_INTEGER) {
  const range = most === Number.MAX_SAFE_INTEGER ? `of ${least} or more` : `from ${least} to ${most}`;
  return (value: string): number => {
    const number = Number(value);
    if (!/^\d+$/.test(value.trim()) || number < least || number > most)
      throw new Error(`a whole number ${range}, not ${JSON.stringify(value)}`);
    return number;
  };
}

/** A whole number, or `unlimited`, which is read as Infinity. */
export function wholeOrUnlimited(value: string): number {
  if (value.trim() === 'unlimited') return Number.POSITIVE_INFINITY;
  if (!/^\d+$/.test(value.trim())) throw new Error(`a whole number or "unlimited", not ${JSON.stringify(value)}`);
  return Number(value);
}

/** One of the given values. */
export function oneOf<const Values extends readonly string[]>(values: Values) {
  return (value: string): Values[number] => {
    if (!values.includes(value)) throw new Error(`one of ${values.join(', ')}, not ${JSON.stringify(value)}`);
    return value;
  };
}

/** `true` or `false`. */
export function yesOrNo(value: string): boolean {
  const word = value.trim().toLowerCase();
  if (!['true', 'false', '1', '0'].includes(word)) throw new Error(`true or false, not ${JSON.stringify(value)}`);
  return ['true', '1'].includes(word);
}

/** A comma-separated list; empty entries are ignored. */
export function listOf<T>(parseItem: (item: string) => T) {
  return (value: string): readonly T[] => commaList(value).map(parseItem);
}

/** An item of a list of origins (RFC 6454), as browsers send them in `Origin`; `*` stands for all. */
export function origin(item: string): string {
  if (item === '*' || (/^https?:\/\//.test(item) && URL.canParse(item) && new URL(item).origin === item)) return item;
  throw new Error(`a comma-separated list of origins such as https://app.example.com, or *, not ${JSON.stringify(item)}`);
}

/** How many characters of a name may differ for it to be near. */
const mostChanges = 3;

/**
 * The name in the list with the smallest Levenshtein distance to `text`; undefined: none is near, so a suggestion would mislead.
 * The part of a name beyond the text's length counts as one change, since people often leave out the end.
 */
export function nearest(text: string, names: readonly string[]): string | undefined {
  const changes = (name: string) => Math.min(distance(text, name), distance(text, name.slice(0, text.length)) + 1);
  const best = names.reduce((found, name) => (changes(name) < changes(found) ? name : found));
  return changes(best) <= Math.min(mostChanges, Math.floor(text.length / 2)) ? best : undefined;
}

function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= to.length; j += 1) {
      const changed = row[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(changed, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row.at(-1)!;
}

/** Resolves with a sentence about variables that no program of this package reads; undefined: there are none. */
export type UnknownVariables = (environment: Readonly<Record<string, string | undefined>>) => Promise<string | undefined>;

/** The names of the variables of a table of settings. */
export const variablesOf = (table: SettingsTable): string[] => Object.values(table).flatMap(({ variable }) => variable ?? []);
