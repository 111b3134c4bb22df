import { drainSettings, logSettings, metricsToken, publicUrl, tracingSettings } from '../kit/common-settings.ts';
import { isLoopback } from '../kit/loopback.ts';
import { privateHosts, trustedProxies } from '../kit/outgoing/settings.ts';
import {
  checked,
  listOf,
  readSettings,
  SettingsError,
  type SettingsOf,
  type SettingsTable,
  text,
  variablesOf,
  whole,
  yesOrNo,
} from '../kit/settings.ts';
import { databaseUrlProblem } from '../kit/sql/database.ts';
import { keysOfTable, parseApiKeys } from './rules/api-keys.ts';
import { parseGrant } from './rules/key-grants.ts';
import { parseRateLimit } from './rules/rate-limit.ts';

/** What is wrong with a place to store chains and results. */
function storageProblem(url: string): string | undefined {
  const problem = url === 'memory' ? undefined : databaseUrlProblem(url);
  return problem?.startsWith('sqlite://PATH, ') ? `memory, ${problem}` : problem;
}

/** The settings of the fallback service. Flags have precedence over the environment, then the TOML file, then the defaults. */
export const settingsTable = {
  host: { flag: '--host', fallback: '127.0.0.1', help: 'The address to listen on.', parse: text },
  port: { flag: '--port', fallback: '8000', help: 'The port to listen on; 0 picks a free one.', parse: whole(0, 65_535) },
  storage: {
    flag: '--storage',
    fallback: 'memory',
    help: 'Where chains and results are stored: memory, sqlite://PATH or postgres://user:password@host:port/database, with ?pgbouncer=true through a PgBouncer in transaction mode.',
    parse: checked(storageProblem),
  },
  rateLimit: {
    flag: '--rate-limit',
    fallback: undefined,
    help: 'The maximum number of requests per key, or per address without a key, in any period, such as `100/minute`; by default no limit.',
    parse: parseRateLimit,
  },
  allowLive: {
    flag: '--allow-live',
    fallback: 'false',
    help: 'Whether tests may send requests: to the real providers (the modes drill and live), or to a gateway (rehearsal).',
    parse: yesOrNo,
  },
  allowOpen: {
    flag: '--allow-open',
    fallback: 'false',
    help: 'Whether other machines may connect although no API key is configured.',
    parse: yesOrNo,
  },
  apiKeys: {
    variable: 'SERVICE_API_KEYS',
    fallback: '',
    help: 'The API keys, comma-separated, as `key` or `label:key`. In the file a table `[api_keys]`, label = key. Without keys, anyone may call.',
    parse: parseApiKeys,
    parseTable: keysOfTable,
  },
  liveAllow: {
    variable: 'SERVICE_LIVE_ALLOW',
    fallback: '',
    help: 'Private hosts or CIDRs that drills, live tests and rehearsals may reach, on all ports and by plain http; comma-separated.',
    parse: privateHosts,
  },
  liveKeys: {
    variable: 'SERVICE_LIVE_KEYS',
    fallback: undefined,
    help: "Which variable's key may be sent to which host: `NAME@host` or `NAME@host:port`, comma-separated; a NAME may end in `*`. By default each known kind's variable at its own host.",
    parse: listOf(parseGrant),
  },
  resultsPerChain: {
    variable: 'SERVICE_RESULTS_PER_CHAIN',
    fallback: '100',
    help: 'How many of the newest test results of each chain are kept; 0: all.',
    parse: whole(0, 1_000_000),
  },
  resultRetentionSeconds: {
    variable: 'SERVICE_RESULT_RETENTION_SECONDS',
    fallback: '7776000',
    help: 'How long test results are kept, in seconds, also those of deleted chains; 0: forever.',
    parse: whole(0, 3_153_600_000),
  },
  publicUrl: publicUrl('The address at which gateways reach the fake providers of rehearsals. By default the origin of each request.'),
  trustedProxies,
  metricsToken: metricsToken(''),
  ...drainSettings,
  ...logSettings,
  ...tracingSettings,
} as const satisfies SettingsTable;

/** The names of the variables that the service reads its settings from. */
export const variables: readonly string[] = variablesOf(settingsTable);

export type Settings = SettingsOf<typeof settingsTable>;

/**
 * Reads the settings of the fallback service.
 * @throws SettingsError that lists all problems; one is a service without keys on a non-loopback host without --allow-open
 */
export function readFallbackSettings(sources: Parameters<typeof readSettings>[1]): Settings {
  const settings = readSettings(settingsTable, sources);
  if (settings.apiKeys.keys.length === 0 && !isLoopback(settings.host) && !settings.allowOpen) {
    throw new SettingsError([
      `No API key is configured, and other machines can reach --host ${settings.host}: set SERVICE_API_KEYS, or use --allow-open if anyone may call.`,
    ]);
  }
  return settings;
}

/** The database URL of the storage setting. */
export function databaseUrlOf({ storage }: Pick<Settings, 'storage'>): string {
  return storage === 'memory' ? 'sqlite::memory:' : storage;
}
