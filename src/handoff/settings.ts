import { logSettings, metricsToken, tracingSettings } from '../kit/common-settings.ts';
import { privateHosts, trustedProxies } from '../kit/outgoing/settings.ts';
import { listOf, originList, readSettings, type SettingsOf, text, whole, wholeOrUnlimited, yesOrNo } from '../kit/settings.ts';
import { databaseUrlProblem } from '../kit/sql/database.ts';
import type { Tier } from './model/common.ts';
import { looksLikeKey } from './rules/keys.ts';
import type { TierLimits } from './rules/tiers.ts';

const hour = (tier: string, fallback: string) =>
  whole({ variable: `SERVICE_HOURLY_QUOTA_${tier}`, fallback, help: `Requests per hour for a ${tier.toLowerCase()} tenant; 0 = off.` });
const day = (tier: string, fallback: string) =>
  wholeOrUnlimited({
    variable: `SERVICE_HANDOFFS_PER_DAY_${tier}`,
    fallback,
    help: `Packets per UTC day for a ${tier.toLowerCase()} tenant: a number, or unlimited.`,
  });
const bytes = (tier: string, fallback: string) =>
  whole(
    {
      variable: `SERVICE_PACKET_BYTES_${tier}`,
      fallback,
      help: `The largest packet of a ${tier.toLowerCase()} tenant, in bytes of request body.`,
    },
    1024,
    16_777_216,
  );
const connections = (tier: string, fallback: string) =>
  whole({
    variable: `SERVICE_CONNECTIONS_${tier}`,
    fallback,
    help: `Connections that a ${tier.toLowerCase()} tenant may have open per instance: streams, and requests that wait for work.`,
  });

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
/** How long something is kept, in seconds; 0: forever. */
const retention = <const Fallback extends string>(parts: { variable: string; fallback: Fallback; help: string }) =>
  whole(parts, 0, maxRetention);

/** A list of delays in seconds, at least one. */
function secondsList<const Fallback extends string | undefined>(parts: Parameters<typeof listOf<number, Fallback>>[0]) {
  const list = listOf(parts, (item) => {
    if (!/^\d{1,9}(\.\d+)?$/.test(item)) throw new Error(`a comma-separated list of seconds, not ${JSON.stringify(item)}`);
    return Number(item);
  });
  return {
    ...list,
    parse(value: string): readonly number[] {
      const delays = list.parse(value);
      if (delays.length === 0) throw new Error('a comma-separated list of seconds with at least one');
      return delays;
    },
  };
}

/** Every setting of the handoff service. Flags take precedence over the environment, then the TOML file, then the defaults. */
export const settingsTable = {
  host: text({ variable: 'SERVICE_HOST', flag: '--host', fallback: '0.0.0.0', help: 'The address to listen on.' }),
  port: whole(
    { variable: 'SERVICE_PORT', flag: '--port', fallback: '8080', help: 'The port to listen on; 0 picks a free one.' },
    0,
    65_535,
  ),
  databaseUrl: text(
    {
      variable: 'SERVICE_DATABASE_URL',
      fallback: 'sqlite://./data/handoff.db',
      help: 'sqlite://PATH, sqlite::memory: or postgres://user:password@host:port/database, with ?pgbouncer=true through a PgBouncer in transaction mode.',
    },
    databaseUrlProblem,
  ),
  redisUrl: text(
    {
      variable: 'SERVICE_REDIS_URL',
      fallback: undefined,
      help: 'redis://host:port, to share limit counters and hints of new events between instances. While it is unavailable, each instance counts by itself, and streams receive events of other instances within three seconds.',
    },
    (url) => (/^rediss?:\/\/.+/.test(url) ? undefined : 'redis://host:port'),
  ),
  adminKey: text(
    {
      variable: 'SERVICE_ADMIN_KEY',
      fallback: undefined,
      help: 'The first admin key, for an empty database. If not set, the first start creates a key and prints it once, after the address.',
    },
    (key) => {
      if (!/^[\x21-\x7e]{16,512}$/.test(key)) return '16 to 512 visible ASCII characters without spaces';
      return looksLikeKey(key) ? undefined : 'a text that does not begin with svc_, or a complete key of this service';
    },
  ),
  devMode: yesOrNo({
    variable: 'SERVICE_DEV_MODE',
    fallback: 'false',
    help: 'Whether streams without a key see the tenant default. Requests without a key must then name localhost or SERVICE_HOST as Host, and come from no foreign page. For development only.',
  }),
  rateLimitPerMinute: whole({
    variable: 'SERVICE_RATE_LIMIT_PER_MINUTE',
    fallback: undefined,
    help: 'Requests per key in any 60 seconds; 0 = off. If not set: 60 for keys of the tiers free and pro, no limit for business.',
  }),
  hourlyQuotaFree: hour('FREE', '100'),
  hourlyQuotaPro: hour('PRO', '1000'),
  hourlyQuotaBusiness: hour('BUSINESS', '10000'),
  handoffsPerDayFree: day('FREE', '5'),
  handoffsPerDayPro: day('PRO', 'unlimited'),
  handoffsPerDayBusiness: day('BUSINESS', 'unlimited'),
  packetBytesFree: bytes('FREE', '65536'),
  packetBytesPro: bytes('PRO', '262144'),
  packetBytesBusiness: bytes('BUSINESS', '1048576'),
  chainDepthMax: whole(
    { variable: 'SERVICE_CHAIN_DEPTH_MAX', fallback: '1000', help: 'The most packets from the root of a chain to its end; 0 = off.' },
    0,
    1_000_000,
  ),
  openPacketsPerAgent: whole(
    {
      variable: 'SERVICE_OPEN_PACKETS_PER_AGENT',
      fallback: '0',
      help: 'The most open packets of one source agent: not completed, failed or expired; 0 = off.',
    },
    0,
    1_000_000,
  ),
  batchMax: whole({ variable: 'SERVICE_BATCH_MAX', fallback: '100', help: 'The most items of a batch.' }, 1, 10_000),
  connectionsFree: connections('FREE', '10'),
  connectionsPro: connections('PRO', '100'),
  connectionsBusiness: connections('BUSINESS', '1000'),
  webhookAllow: privateHosts(
    'SERVICE_WEBHOOK_ALLOW',
    'Private hosts or CIDRs that webhooks, channels and `SERVICE_SMTP_URL` may reach, also over plain http or SMTP without TLS.',
  ),
  smtpUrl: text(
    {
      variable: 'SERVICE_SMTP_URL',
      fallback: undefined,
      help: 'The mail server for channels of the kind `email`: smtp://user:password@host:port, or smtps:// for TLS from the start. Over smtp:// it must offer STARTTLS, unless SERVICE_WEBHOOK_ALLOW names it, as it must a server with a private address.',
    },
    smtpUrlProblem,
  ),
  mailFrom: text(
    { variable: 'SERVICE_MAIL_FROM', fallback: undefined, help: 'The sender of mails: an address, or `Name <address>`.' },
    (sender) =>
      /^([^<>"\p{Cc}]* )?<?[^\s<>"(),:;@]+@[\w.-]+>?$/u.test(sender)
        ? undefined
        : 'an address such as baton@example.com, or Name <address>',
  ),
  webhookRetrySeconds: secondsList({
    variable: 'SERVICE_WEBHOOK_RETRY_SECONDS',
    fallback: '1,5,30,300,3600,21600',
    help: 'The delay after each failed attempt, in seconds, one per attempt. The last one is the delay before retry-all includes a dead letter.',
  }),
  webhookDisableAfterSeconds: whole({
    variable: 'SERVICE_WEBHOOK_DISABLE_AFTER_SECONDS',
    fallback: '432000',
    help: 'How long all deliveries of a webhook may fail before it is disabled, in seconds; 0 = never disabled.',
  }),
  webhookSecretOverlapSeconds: whole({
    variable: 'SERVICE_WEBHOOK_SECRET_OVERLAP_SECONDS',
    fallback: '86400',
    help: 'How long deliveries are also signed with the previous secret of a webhook, in seconds.',
  }),
  streamRetentionSeconds: whole(
    {
      variable: 'SERVICE_STREAM_RETENTION_SECONDS',
      fallback: '604800',
      help: 'How far back a stream can resume, in seconds. History and audit log are kept forever.',
    },
    1,
  ),
  deliveryRetentionSeconds: retention({
    variable: 'SERVICE_DELIVERY_RETENTION_SECONDS',
    fallback: '2592000',
    help: 'How long a delivered or cancelled delivery is kept with its body, in seconds after its end; 0 = forever.',
  }),
  deadLetterRetentionSeconds: retention({
    variable: 'SERVICE_DEAD_LETTER_RETENTION_SECONDS',
    fallback: '0',
    help: 'How long a dead letter is kept with its body, in seconds after its last attempt; 0 = until it is replayed.',
  }),
  idempotencyRetentionSeconds: whole(
    {
      variable: 'SERVICE_IDEMPOTENCY_RETENTION_SECONDS',
      fallback: '86400',
      help: 'How long an answer is repeated to requests with its `Idempotency-Key`, in seconds.',
    },
    60,
    maxRetention,
  ),
  unclaimedTtlSeconds: whole({
    variable: 'SERVICE_UNCLAIMED_TTL_SECONDS',
    fallback: '0',
    help: 'How long a packet may stay unclaimed before it expires, in seconds; 0 = off.',
  }),
  publicUrl: text(
    {
      variable: 'SERVICE_PUBLIC_URL',
      fallback: undefined,
      help: 'The address by which people reach the service, for answer links. By default the origin of the request that makes a link.',
    },
    (url) => (/^https?:\/\/[^/?#@\s]+(\/[^?#\s]*)?$/.test(url) && URL.canParse(url) ? undefined : 'an http or https URL without a query'),
  ),
  corsOrigins: originList({
    variable: 'SERVICE_CORS_ORIGINS',
    fallback: '',
    help: 'Origins whose pages may call the API, comma-separated; `*` for all.',
  }),
  allowedHosts: listOf(
    {
      variable: 'SERVICE_ALLOWED_HOSTS',
      fallback: '',
      help: 'Names under which clients reach `/mcp` and `/a2a`, comma-separated, besides localhost and SERVICE_HOST. Requests whose `Host` or `Origin` names another are refused, as a protection against DNS rebinding.',
    },
    (item) => {
      if (/^[\w.:[\]-]+$/.test(item)) return item;
      throw new Error(`a comma-separated list of host names such as baton.example.com, not ${JSON.stringify(item)}`);
    },
  ),
  a2aAgents: listOf(
    {
      variable: 'SERVICE_A2A_AGENTS',
      fallback: '',
      help: 'Ids of the agents that the public agent card of A2A names, comma-separated, each as a skill. A message that names no agent goes to the only one, or to `handoff` if there is none.',
    },
    (item) => item,
  ),
  trustedProxies,
  metricsToken: metricsToken(' and labels tenants with their ids; otherwise with pseudonyms'),
  ...logSettings,
  ...tracingSettings,
} as const;

export type Settings = SettingsOf<typeof settingsTable>;

/**
 * Reads the settings of the handoff service.
 * @throws SettingsError with every problem
 */
export function readHandoffSettings(sources: Parameters<typeof readSettings>[1]): Settings {
  return readSettings(settingsTable, sources);
}

/** The most open connections of a tenant, by tier. */
export function maxConnections(settings: Settings): Record<Tier, number> {
  return { free: settings.connectionsFree, pro: settings.connectionsPro, business: settings.connectionsBusiness };
}

/** The limits of each tier. */
export function tierLimits(settings: Settings): Record<Tier, TierLimits> {
  return {
    free: { hourlyQuota: settings.hourlyQuotaFree, handoffsPerDay: settings.handoffsPerDayFree, packetBytes: settings.packetBytesFree },
    pro: { hourlyQuota: settings.hourlyQuotaPro, handoffsPerDay: settings.handoffsPerDayPro, packetBytes: settings.packetBytesPro },
    business: {
      hourlyQuota: settings.hourlyQuotaBusiness,
      handoffsPerDay: settings.handoffsPerDayBusiness,
      packetBytes: settings.packetBytesBusiness,
    },
  };
}
