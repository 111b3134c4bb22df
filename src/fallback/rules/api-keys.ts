import { commaList } from '../../kit/comma-list.ts';
/** An API key and its label. */
export interface ApiKey {
  readonly key: string;
  readonly label: string | null;
}

/** The configured keys, and warnings for the operator, which never quote a key. */
interface ApiKeys {
  readonly keys: readonly ApiKey[];
  readonly warnings: readonly string[];
}

/** Role words. They are labels on either side of the colon, and never keys. */
const roleWords = new Set(['admin', 'read', 'reader', 'write', 'writer', 'viewer', 'editor', 'operator']);
const isRole = (text: string) => roleWords.has(text.toLowerCase());

/** Labels whose keys may only read and export. */
const readingLabels = new Set(['read', 'reader', 'viewer']);

/** Whether a key with this label may change things. */
export function mayWrite(label: string | null): boolean {
  return label === null || !readingLabels.has(label.toLowerCase());
}

/** The characters of keys and labels: visible ASCII, which headers can carry. */
const visible = /^[\x21-\x7e]{1,512}$/;

interface Entry extends ApiKey {
  /** What error sentences call the entry. */
  readonly title: string;
}

/**
 * Parses `SERVICE_API_KEYS`: a comma-separated list of keys and `label:key` pairs.
 * @throws Error whose message completes "SERVICE_API_KEYS must be ..."
 */
export function parseApiKeys(text: string): ApiKeys {
  return keysOf(
    commaList(text).map((entry, index) => {
      const colon = entry.indexOf(':');
      const title = `entry ${index + 1}`;
      return colon === -1 ? { title, label: null, key: entry } : { title, label: entry.slice(0, colon), key: entry.slice(colon + 1) };
    }),
  );
}

/**
 * Parses the table of keys in the settings file, label = key.
 * @throws Error whose message completes "api_keys in FILE must be ..."
 */
export function keysOfTable(table: Readonly<Record<string, unknown>>): ApiKeys {
  return keysOf(
    Object.entries(table).map(([label, key]) => {
      if (typeof key !== 'string')
        throw new Error(`a table of labels and keys, each key a string; the key of ${JSON.stringify(label)} is not`);
      return { title: `the entry ${JSON.stringify(label)}`, label, key };
    }),
  );
}

function keysOf(entries: readonly Entry[]): ApiKeys {
  const warnings: string[] = [];
  const keys: ApiKey[] = [];
  const titles = new Map<string, string>();
  for (const entry of entries) {
    const { title, label, key } = rightWayRound(entry, warnings);
    if (key === '') throw new Error(`a list of keys; ${title} has a label and no key`);
    if (label === '') throw new Error(`a list of keys; ${title} has nothing before its colon: leave the colon out, or put a label there`);
    if (isRole(key)) throw new Error(`a list of keys; ${title} has a role word where its key should be`);
    if (!visible.test(key) || (label !== null && !visible.test(label)))
      throw new Error(`a list of keys of at most 512 visible ASCII characters without spaces; ${title} is not one`);
    const first = titles.get(key);
    if (first !== undefined) throw new Error(`a list of keys that differ; ${title} repeats the key of ${first}`);
    titles.set(key, title);
    keys.push({ key, label });
  }
  return { keys, warnings };
}

/** The entry as `label:key`. The reverse order is recognized if only the right side is a role word. */
function rightWayRound(entry: Entry, warnings: string[]): Entry {
  const { title, label, key } = entry;
  if (label === null || label === '' || !isRole(key) || isRole(label)) return entry;
  warnings.push(`${title} of the API keys is read as key:label, because ${JSON.stringify(key)} is a role; the order is label:key.`);
  return { title, label: key, key: label };
}
