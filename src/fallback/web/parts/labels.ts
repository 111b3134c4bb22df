import { words } from '../../../kit/web/format.ts';
import { conditions } from '../../model/chain.ts';

/** The labels of the editor's fields, by their names in a request. */
const labels: Readonly<Record<string, string>> = {
  name: 'Name',
  description: 'Description',
  model_id: 'Model',
  api_key_env: 'Key variable',
  timeout_ms: 'Timeout',
  first_token_ms: 'First content of a stream',
  idle_ms: 'Longest pause of a stream',
  provider: 'Kind',
  api_base: 'Address',
  max_tokens: 'Maximum tokens in tests',
  input_cost_per_1m: 'Price of input',
  output_cost_per_1m: 'Price of output',
  params: 'Parameters',
  priority: 'Priority',
  condition: 'When it fails with',
  action: 'Action',
  status_codes: 'Only for HTTP statuses',
  max_retries: 'Extra attempts',
  wait_ms: 'First wait',
  backoff: 'Later waits',
  max_wait_ms: 'Longest wait',
  then: 'Then',
  to: 'Fail over to',
  respect_retry_after: 'Obey Retry-After',
  providers: 'Providers',
  fallback_rules: 'Rules',
  cooldown: 'Cool-down',
  allowed_fails: 'Allowed failures',
  window_ms: 'Counted within',
  seconds: 'Left out for',
};

/** The name of a field as the editor shows it: `providers.0.model_id` is `Provider 1 (Model)`. */
function fieldName(path: string): string {
  const [first = '', position, field, ...rest] = path.split('.');
  if (position === undefined) return labels[first] ?? first;
  if (first === 'cooldown') return `${labels.cooldown} (${labels[position] ?? position})`;
  const part = `${first === 'providers' ? 'Provider' : 'Rule'} ${Number(position) + 1}`;
  if (field === undefined) return part;
  const inner = rest.filter((name) => !/^\d+$/.test(name)).map((name) => labels[name] ?? name);
  return `${part} (${[labels[field] ?? field, ...inner].join(', ')})`;
}

const paths = /\b(?:providers|fallback_rules)\.\d+(?:\.[\w-]+)*|\bcooldown\.\w+/g;

/** Names of the API in sentences, by what the dashboard calls them. */
const names = new Map<string, string>([
  ...conditions.map((name) => [name, words(name)] as const),
  ['api_key_env', 'key variable'],
  ['connection_refused', 'connection refused'],
  ['prompt_count', 'number of prompts'],
  ['from_s', 'the begin'],
  ['to_s', 'the end'],
]);
const nameOfApi = new RegExp(`\\b(?:${[...names.keys()].join('|')})\\b`, 'g');

/** A sentence of the service with the names that the dashboard uses: of fields, and of conditions. */
export const labelled = (sentence: string): string =>
  sentence.replace(paths, fieldName).replace(nameOfApi, (name) => names.get(name) ?? name);

/** Notes of the service, to be shown. */
export const labelledNotes = <T extends { detail: string }>(notes: readonly T[]): T[] =>
  notes.map((note) => ({ ...note, detail: labelled(note.detail) }));

/** The faults of a request, each with the name of its field in front. */
export const faultNotes = (faults: readonly { field: string; detail: string }[]) =>
  faults.map(({ field, detail }) => {
    const named = fieldName(field);
    if (detail.startsWith(`${field} `)) return { field, detail: `${named}${labelled(detail.slice(field.length))}` };
    return { field, detail: `${named}: ${labelled(detail)}` };
  });
