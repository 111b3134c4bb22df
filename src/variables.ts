import { settingsTable as fallback } from './fallback/settings.ts';
import { settingsTable as handoff } from './handoff/settings.ts';
import { nearest, type SettingsTable } from './kit/settings.ts';

/** The variables that the commands of `service-cli` read, with their descriptions. */
export const clientVariables = {
  SERVICE_URL: 'The base URL of the API; `--server-url` takes precedence.',
  SERVICE_API_KEY: 'The API key; `--api-key` takes precedence.',
  SERVICE_WEBHOOK_SECRET:
    'The secret for `hooks create`, and for `hooks update --secret` without a value; `--secret TEXT` takes precedence. Unlike a flag, it does not appear in the list of processes. The service does not read it.',
  SERVICE_CHANNEL_TARGET:
    'The target for `channels create`; `--target TEXT` takes precedence. The URL of a Slack webhook is a secret, and flags appear in the list of processes.',
} as const;

/** Variables that the programs read besides their settings. */
const others = ['SERVICE_CONFIG', ...Object.keys(clientVariables)];

/** Every `SERVICE_*` variable that a program of this package reads. */
export const knownVariables: readonly string[] = [...new Set([...variablesOf(handoff), ...variablesOf(fallback), ...others])];

function variablesOf(table: SettingsTable): string[] {
  return Object.values(table).flatMap(({ variable }) => variable ?? []);
}

/** A sentence about `SERVICE_*` variables that no program of this package reads, each with the nearest known name; undefined: none. */
export function unknownVariables(environment: Readonly<Record<string, string | undefined>>): string | undefined {
  const unknown = Object.keys(environment)
    .filter((name) => name.startsWith('SERVICE_') && !knownVariables.includes(name))
    .sort();
  if (unknown.length === 0) return undefined;
  const list = unknown.map((name) => `${name} (the nearest known name is ${nearest(name, knownVariables)})`);
  return `not read, because no setting has this name: ${list.join(', ')}`;
}
