import { addressRange, parseAllowList } from '../kit/outgoing/addresses.ts';
import { listOf, oneOf, parsed, readSettings, SettingsError, type SettingsOf, text, whole, yesOrNo } from '../kit/settings.ts';
import { databaseUrlProblem } from '../kit/sql/database.ts';
import { keysOfTable, parseApiKeys } from './rules/api-keys.ts';
import { type KeyGrant, parseGrants } from './rules/key-grants.ts';
import { parseRateLimit } from './rules/rate-limit.ts';

function allowListItems(list: string): readonly string[] {
  const items = list
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
  // Throws for an invalid item.
  parseAllowList(items);
  return items;
}

function grantsOf(list: string): readonly KeyGrant[] {
  try {
    return parseGrants(list);
  } catch (error) {
    throw new Error(`a list of grants; ${(error as Error).message}`);
  }
}

/** The settings of the fallback service. Flags have precedence over the environment, then the TOML file, then the defaults. */
export const settingsTable = {
  host: text({ flag: '--host', fallback: '127.0.0.1', help: 'The address to listen on.' }),
  port: whole({ flag: '--port', fallback: '8000', help: 'The port to listen on; 0 picks a free one.' }, 0, 65_535),
  storage: text(
    {
      flag: '--storage',
      fallback: 'memory',
      help: 'Where chains and results are stored: memory, sqlite://PATH or postgres://user:password@host:port/database.',
    },
    (url) => {
      const problem = url === 'memory' ? undefined : databaseUrlProblem(url);
      return problem?.startsWith('sqlite://PATH, ') ? `memory, ${problem}` : problem;
    },
  ),
  rateLimit: parsed(
    {
      flag: '--rate-limit',
      fallback: undefined,
      help: 'The most requests per key, or per address without a key, in any period, such as `100/minute`; by default no limit.',
    },
    parseRateLimit,
  ),
  allowLive: yesOrNo({
    flag: '--allow-live',
    fallback: 'false',
    help: 'Whether tests may call the real providers (the modes drill and live).',
  }),
  allowOpen: yesOrNo({
    flag: '--allow-open',
    fallback: 'false',
    help: 'Whether other machines may connect although no API key is configured.',
  }),
  apiKeys: parsed(
    {
      variable: 'SERVICE_API_KEYS',
      fallback: '',
      help: 'The API keys, comma-separated, as `key` or `label:key`. In the file a table `[api_keys]`, label = key. Without keys everybody may call.',
      parseTable: keysOfTable,
    },
    parseApiKeys,
  ),
  liveAllow: parsed(
    {
      variable: 'SERVICE_LIVE_ALLOW',
      fallback: '',
      help: 'Private hosts or CIDRs that drill and live tests may reach, on all ports and by plain http; comma-separated.',
    },
    allowListItems,
  ),
  liveKeys: parsed(
    {
      variable: 'SERVICE_LIVE_KEYS',
      fallback: undefined,
      help: "Which variable's key may be sent to which host: `NAME@host` or `NAME@host:port`, comma-separated; a NAME may end in `*`. By default each known kind's variable at its own host.",
    },
    grantsOf,
  ),
  resultsPerChain: whole(
    {
      variable: 'SERVICE_RESULTS_PER_CHAIN',
      fallback: '100',
      help: 'How many of the newest test results of each chain are kept; 0: all.',
    },
    0,
    1_000_000,
  ),
  resultRetentionSeconds: whole(
    {
      variable: 'SERVICE_RESULT_RETENTION_SECONDS',
      fallback: '7776000',
      help: 'How long test results are kept, in seconds, also those of deleted chains; 0: forever.',
    },
    0,
    3_153_600_000,
  ),
  trustedProxies: listOf(
    {
      variable: 'SERVICE_TRUSTED_PROXIES',
      fallback: '',
      help: "Addresses or CIDR ranges of proxies in front of the service, comma-separated. For their requests the client's address is read from `Forwarded` or `X-Forwarded-For`.",
    },
    addressRange,
  ),
  metricsToken: text(
    {
      variable: 'SERVICE_METRICS_TOKEN',
      fallback: undefined,
      help: 'If set, `/metrics` requires it as a bearer token.',
    },
    (token) => (/^[\x21-\x7e]{1,512}$/.test(token) ? undefined : 'visible ASCII characters without spaces'),
  ),
  logLevel: oneOf({ variable: 'SERVICE_LOG_LEVEL', fallback: 'info', help: 'The lowest level that is logged.' }, [
    'trace',
    'debug',
    'info',
    'warn',
    'error',
    'fatal',
    'silent',
  ]),
  logFormat: oneOf(
    {
      variable: 'SERVICE_LOG_FORMAT',
      fallback: undefined,
      help: 'The format of log lines; by default `pretty` on a terminal and `json` elsewhere.',
    },
    ['pretty', 'json'],
  ),
} as const;

export type Settings = SettingsOf<typeof settingsTable>;

/** Whether the host is a loopback address. */
const isLoopback = (host: string) => host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host);

/**
 * Reads the settings of the fallback service.
 * @throws SettingsError that lists all problems; one is a service without keys on a non-loopback host without --allow-open
 */
export function readFallbackSettings(sources: Parameters<typeof readSettings>[1]): Settings {
  const settings = readSettings(settingsTable, sources);
  if (settings.apiKeys.keys.length === 0 && !isLoopback(settings.host) && !settings.allowOpen) {
    throw new SettingsError([
      `No API key is configured, and other machines can reach --host ${settings.host}: set SERVICE_API_KEYS, or use --allow-open if everybody may call.`,
    ]);
  }
  return settings;
}

/** The database URL of the storage setting. */
export function databaseUrlOf({ storage }: Pick<Settings, 'storage'>): string {
  return storage === 'memory' ? 'sqlite::memory:' : storage;
}
