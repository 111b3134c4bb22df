import { createPrivateKey } from 'node:crypto';
import { drainSettings, logSettings, metricsToken, publicUrl, tracingSettings } from '../kit/common-settings.ts';
import { privateHosts, trustedProxies } from '../kit/outgoing/settings.ts';
import {
  checked,
  listOf,
  origin,
  readSettings,
  SettingsError,
  type SettingsOf,
  type SettingsTable,
  text,
  variablesOf,
  whole,
  wholeOrUnlimited,
  yesOrNo,
} from '../kit/settings.ts';
import { databaseUrlProblem } from '../kit/sql/database.ts';
import { readText } from '../kit/text-file.ts';
import { identityProblems, identitySettings } from './identity-settings.ts';
import { type Tier, tiers } from './model/common.ts';
import { looksLikeKey } from './rules/keys.ts';
import type { TierLimits } from './rules/tiers.ts';

/** The name of a setting of a tier, such as `hourlyQuotaFree`. */
const nameFor = <Name extends string>(name: Name, tier: Tier) =>
  `${name}${tier[0]!.toUpperCase()}${tier.slice(1)}` as `${Name}${Capitalize<Tier>}`;

interface TierRow<T> {
  variable: string;
  fallback: Record<Tier, string>;
  help: (tier: Tier) => string;
  parse: (text: string) => T;
}

/** A setting that each tier has a row of. */
function perTier<const Name extends string, T>(name: Name, { variable, fallback, help, parse }: TierRow<T>) {
  const row = (tier: Tier) => ({ variable: `${variable}_${tier.toUpperCase()}`, fallback: fallback[tier], help: help(tier), parse });
  return Object.fromEntries(tiers.map((tier) => [nameFor(name, tier), row(tier)])) as {
    readonly [Each in `${Name}${Capitalize<Tier>}`]: ReturnType<typeof row>;
  };
}

/** What is wrong with the address of a mail server. The value is not repeated, since it may contain a password. */
function smtpUrlProblem(value: string): string | undefined {
  const url = URL.parse(value);
  const isWhole = url !== null && /^smtps?:$/.test(url.protocol) && url.hostname !== '' && !/[?#]/.test(value);
  return isWhole && (url.pathname === '' || url.pathname === '/') ? undefined : 'smtp://user:password@host:port, or smtps://';
}

/** Why no mail can be sent, as a sentence; undefined when it can. */
export function mailProblem({ smtpUrl, mailFrom }: Settings): string | undefined {
  const missing = [smtpUrl === undefined ? 'SERVICE_SMTP_URL' : [], mailFrom === undefined ? 'SERVICE_MAIL_FROM' : []].flat();
  if (missing.length === 0) return undefined;
  return `Channels of the kind email need a mail server: the operator must set ${missing.join(' and ')}.`;
}

/** The longest time for which data is kept that is kept for a time: a century, in seconds. */
const maxRetention = 3_153_600_000;

/** A list of delays in seconds, at least one. */
function secondsList(value: string): readonly number[] {
  const delays = listOf((item) => {
    if (!/^\d{1,9}(\.\d+)?$/.test(item)) throw new Error(`a comma-separated list of seconds, not ${JSON.stringify(item)}`);
    return Number(item);
  })(value);
  if (delays.length === 0) throw new Error('a comma-separated list of seconds with at least one');
  return delays;
}

/** The PEM of a private key, given itself or by the path of its file. The value is not repeated. */
function signingKey(value: string): string {
  const expected = 'a private key of Ed25519 as PEM, or the path of a file with it';
  try {
    const pem = value.includes('-----BEGIN') ? value : readText(value);
    if (createPrivateKey(pem).asymmetricKeyType === 'ed25519') return pem;
  } catch {
    // The reason may have a part of the key.
  }
  throw new Error(expected);
}

/** What is wrong with the first admin key. */
function adminKeyProblem(key: string): string | undefined {
  if (!/^[\x21-\x7e]{16,512}$/.test(key)) return '16 to 512 visible ASCII characters without spaces';
  return looksLikeKey(key) ? undefined : 'a text that does not begin with svc_, or a complete key of this service';
}

/** Every setting of the handoff service. Flags take precedence over the environment, then the TOML file, then the defaults. */
export const settingsTable = {
  host: { variable: 'SERVICE_HOST', flag: '--host', fallback: '0.0.0.0', help: 'The address to listen on.', parse: text },
  port: {
    variable: 'SERVICE_PORT',
    flag: '--port',
    fallback: '8080',
    help: 'The port to listen on; 0 picks a free one.',
    parse: whole(0, 65_535),
  },
  databaseUrl: {
    variable: 'SERVICE_DATABASE_URL',
    fallback: 'sqlite://./data/handoff.db',
    help: 'sqlite://PATH, sqlite::memory: or postgres://user:password@host:port/database, with ?pgbouncer=true through a PgBouncer in transaction mode.',
    parse: checked(databaseUrlProblem),
  },
  redisUrl: {
    variable: 'SERVICE_REDIS_URL',
    fallback: undefined,
    help: 'redis://host:port, to share limit counters and hints of new events between instances. While it is unavailable, each instance counts by itself, and streams receive events of other instances within three seconds.',
    parse: checked((url) => (/^rediss?:\/\/.+/.test(url) ? undefined : 'redis://host:port')),
  },
  adminKey: {
    variable: 'SERVICE_ADMIN_KEY',
    fallback: undefined,
    help: 'The first admin key, for an empty database. If not set, the first start creates a key and prints it once, after the address.',
    parse: checked(adminKeyProblem),
  },
  devMode: {
    variable: 'SERVICE_DEV_MODE',
    fallback: 'false',
    help: 'Whether streams without a key see the tenant default. Requests without a key must then name localhost or SERVICE_HOST as Host, and must not come from a foreign page. For development only.',
    parse: yesOrNo,
  },
  rateLimitPerMinute: {
    variable: 'SERVICE_RATE_LIMIT_PER_MINUTE',
    fallback: undefined,
    help: 'Requests per key in any 60 seconds; 0 = off. If not set: 60 for keys of the tiers free and pro, no limit for business.',
    parse: whole(),
  },
  ...perTier('hourlyQuota', {
    variable: 'SERVICE_HOURLY_QUOTA',
    fallback: { free: '100', pro: '1000', business: '10000' },
    help: (tier) => `Requests per hour for a ${tier} tenant; 0 = off.`,
    parse: whole(),
  }),
  ...perTier('handoffsPerDay', {
    variable: 'SERVICE_HANDOFFS_PER_DAY',
    fallback: { free: '5', pro: 'unlimited', business: 'unlimited' },
    help: (tier) => `Packets per UTC day for a ${tier} tenant: a number, or unlimited.`,
    parse: wholeOrUnlimited,
  }),
  ...perTier('packetBytes', {
    variable: 'SERVICE_PACKET_BYTES',
    fallback: { free: '65536', pro: '262144', business: '1048576' },
    help: (tier) => `The largest packet of a ${tier} tenant, in bytes of request body.`,
    parse: whole(1024, 16_777_216),
  }),
  chainDepthMax: {
    variable: 'SERVICE_CHAIN_DEPTH_MAX',
    fallback: '1000',
    help: 'The maximum number of packets from the root of a chain to its end; 0 = off.',
    parse: whole(0, 1_000_000),
  },
  openPacketsPerAgent: {
    variable: 'SERVICE_OPEN_PACKETS_PER_AGENT',
    fallback: '0',
    help: 'The maximum number of open packets of one source agent: not completed, failed or expired; 0 = off.',
    parse: whole(0, 1_000_000),
  },
  batchMax: { variable: 'SERVICE_BATCH_MAX', fallback: '100', help: 'The maximum number of items of a batch.', parse: whole(1, 10_000) },
  ...perTier('connections', {
    variable: 'SERVICE_CONNECTIONS',
    fallback: { free: '10', pro: '100', business: '1000' },
    help: (tier) => `Connections that a ${tier} tenant may have open per instance: streams, and requests that wait for work.`,
    parse: whole(),
  }),
  webhookAllow: {
    variable: 'SERVICE_WEBHOOK_ALLOW',
    fallback: '',
    help: 'Private hosts or CIDRs that webhooks, channels and `SERVICE_SMTP_URL` may reach, also over plain http or SMTP without TLS.',
    parse: privateHosts,
  },
  auditSigningKey: {
    variable: 'SERVICE_AUDIT_SIGNING_KEY',
    fallback: undefined,
    help: 'A private key of Ed25519 as PEM, or the path of a file with it: the heads of audit logs are then signed.',
    parse: signingKey,
  },
  auditAnchorSeconds: {
    variable: 'SERVICE_AUDIT_ANCHOR_SECONDS',
    fallback: '0',
    help: 'How often the heads of audit logs that have moved are written to the log and sent to webhooks that name `audit.head`, in seconds; 0 = never.',
    parse: whole(0, 31_536_000),
  },
  retentionDays: {
    variable: 'SERVICE_RETENTION_DAYS',
    fallback: '0',
    help: 'How many days the content of a packet is kept after the packet ended, unless its tenant has `retention_days`; 0 = for ever.',
    parse: whole(0, 36_500),
  },
  smtpUrl: {
    variable: 'SERVICE_SMTP_URL',
    fallback: undefined,
    help: 'The mail server for channels of the kind `email`: smtp://user:password@host:port, or smtps:// for TLS from the start. Over smtp:// it must offer STARTTLS, unless SERVICE_WEBHOOK_ALLOW names it. A server with a private address must be named there.',
    parse: checked(smtpUrlProblem),
  },
  mailFrom: {
    variable: 'SERVICE_MAIL_FROM',
    fallback: undefined,
    help: 'The sender of mails: an address, or `Name <address>`.',
    parse: checked((sender) =>
      /^([^<>"\p{Cc}]* )?<?[^\s<>"(),:;@]+@[\w.-]+>?$/u.test(sender)
        ? undefined
        : 'an address such as baton@example.com, or Name <address>; a domain beyond ASCII is written in its xn-- form',
    ),
  },
  webhookRetrySeconds: {
    variable: 'SERVICE_WEBHOOK_RETRY_SECONDS',
    fallback: '1,5,30,300,3600,21600',
    help: 'The delay after each failed attempt, in seconds, one per attempt. The last one is the delay before retry-all includes a dead letter.',
    parse: secondsList,
  },
  webhookDisableAfterSeconds: {
    variable: 'SERVICE_WEBHOOK_DISABLE_AFTER_SECONDS',
    fallback: '432000',
    help: 'How long all deliveries of a webhook may fail before it is disabled, in seconds; 0 = never disabled.',
    parse: whole(),
  },
  webhookSecretOverlapSeconds: {
    variable: 'SERVICE_WEBHOOK_SECRET_OVERLAP_SECONDS',
    fallback: '86400',
    help: 'How long deliveries are also signed with the previous secret of a webhook, in seconds.',
    parse: whole(),
  },
  streamRetentionSeconds: {
    variable: 'SERVICE_STREAM_RETENTION_SECONDS',
    fallback: '604800',
    help: 'How far back a stream can resume, in seconds. History and audit log are kept forever.',
    parse: whole(1),
  },
  deliveryRetentionSeconds: {
    variable: 'SERVICE_DELIVERY_RETENTION_SECONDS',
    fallback: '2592000',
    help: 'How long a delivered or cancelled delivery is kept with its body, in seconds after its end; 0 = forever.',
    parse: whole(0, maxRetention),
  },
  deadLetterRetentionSeconds: {
    variable: 'SERVICE_DEAD_LETTER_RETENTION_SECONDS',
    fallback: '0',
    help: 'How long a dead letter is kept with its body, in seconds after its last attempt; 0 = until it is replayed.',
    parse: whole(0, maxRetention),
  },
  idempotencyRetentionSeconds: {
    variable: 'SERVICE_IDEMPOTENCY_RETENTION_SECONDS',
    fallback: '86400',
    help: 'How long an answer is repeated to requests with its `Idempotency-Key`, in seconds.',
    parse: whole(60, maxRetention),
  },
  unclaimedTtlSeconds: {
    variable: 'SERVICE_UNCLAIMED_TTL_SECONDS',
    fallback: '0',
    help: 'How long a packet may stay unclaimed before it expires, in seconds; 0 = off.',
    parse: whole(),
  },
  publicUrl: publicUrl(
    'The address at which people reach the service, for answer links. By default the origin of the request that makes a link.',
  ),
  corsOrigins: {
    variable: 'SERVICE_CORS_ORIGINS',
    fallback: '',
    help: 'Origins whose pages may call the API, comma-separated; `*` for all.',
    parse: listOf(origin),
  },
  allowedHosts: {
    variable: 'SERVICE_ALLOWED_HOSTS',
    fallback: '',
    help: 'Names under which clients reach `/mcp` and `/a2a`, comma-separated, besides localhost and SERVICE_HOST. Requests whose `Host` or `Origin` names another are refused, as a protection against DNS rebinding.',
    parse: listOf((item) => {
      if (/^[\w.:[\]-]+$/.test(item)) return item;
      throw new Error(`a comma-separated list of host names such as baton.example.com, not ${JSON.stringify(item)}`);
    }),
  },
  a2aAgents: {
    variable: 'SERVICE_A2A_AGENTS',
    fallback: '',
    help: 'Ids of the agents that the public agent card of A2A names, comma-separated, each as a skill. A message that names no agent goes to the only one, or to `handoff` if there is none.',
    parse: listOf(text),
  },
  ...identitySettings,
  trustedProxies,
  metricsToken: metricsToken(' and labels tenants with their ids; otherwise with pseudonyms'),
  ...drainSettings,
  ...logSettings,
  ...tracingSettings,
} as const satisfies SettingsTable;

/** The names of the variables that the service reads its settings from. */
export const variables: readonly string[] = variablesOf(settingsTable);

export type Settings = SettingsOf<typeof settingsTable>;

/**
 * Reads the settings of the handoff service.
 * @throws SettingsError with every problem
 */
export function readHandoffSettings(sources: Parameters<typeof readSettings>[1]): Settings {
  const settings = readSettings(settingsTable, sources);
  const problems = identityProblems(settings);
  if (problems.length > 0) throw new SettingsError(problems);
  return settings;
}

/** The limits of each tier. */
export function tierLimits(settings: Settings): Record<Tier, TierLimits> {
  const limitsOf = (tier: Tier): TierLimits => ({
    hourlyQuota: settings[nameFor('hourlyQuota', tier)],
    handoffsPerDay: settings[nameFor('handoffsPerDay', tier)],
    packetBytes: settings[nameFor('packetBytes', tier)],
    connections: settings[nameFor('connections', tier)],
  });
  return { free: limitsOf('free'), pro: limitsOf('pro'), business: limitsOf('business') };
}

/** The warning of an admin key in the settings that is none of the database's. */
export const unusedAdminKey =
  'SERVICE_ADMIN_KEY was ignored: the database already has an admin key, and this is not one of its keys. `service-cli admin-key` creates a new one.';

/** The warning of channels without the address that their links begin with. */
export const noPublicUrl =
  'SERVICE_PUBLIC_URL is not set: the links that channels send begin with the address of the request that made the channel, which may be localhost.';
