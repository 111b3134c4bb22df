import { conflict, invalid, notFound } from '../../kit/errors.ts';
import { readJson } from '../../kit/json.ts';
import type { PushConfig } from '../model/a2a.ts';
import { requireKept } from '../rules/erasure.ts';
import { acts, requireLasting, requireRight } from '../rules/rights.ts';
import { noChannel, type PushRow, type StoredWebhook } from '../store/webhooks.ts';
import { type Caller, provenanceOf } from './authentication.ts';
import type { SendingDependencies } from './dependencies.ts';
import { auditRecord } from './trail.ts';

/** The most configurations of a packet. */
const maxPushes = 10;
const maxUrlLength = 2048;
const maxSecretLength = 1024;

const printable = (text: string, most: number): boolean => text.length <= most && /^[\x20-\x7e]*$/.test(text);

/** Requires that a configuration can be sent as headers, with a token to sign with. @throws ServiceError 400 */
function requireHeaders({ id, url, token, authentication }: PushConfig): void {
  if (!printable(id, 255)) throw invalid('id', 'id must have at most 255 characters of ASCII.');
  if (url === '' || url.length > maxUrlLength) throw invalid('url', `url must have 1 to ${maxUrlLength} characters.`);
  if (token.length < 16 || !printable(token, maxSecretLength))
    throw invalid('token', `token must have 16 to ${maxSecretLength} characters of ASCII: it signs the notifications.`);
  if (authentication === undefined) return;
  if (!/^[!#$%&'*+.^_`|~\w-]{1,50}$/.test(authentication.scheme))
    throw invalid('authentication.scheme', 'authentication.scheme must be the name of an HTTP authentication scheme, such as Bearer.');
  if (!printable(authentication.credentials, maxSecretLength))
    throw invalid('authentication.credentials', `authentication.credentials must have at most ${maxSecretLength} characters of ASCII.`);
}

/** The operations on push notification configurations. Their deliveries are those of webhooks. */
export function createPushService({ store, clock, newId, urlProblem }: SendingDependencies) {
  /** Requires that notifications can be sent. @throws ServiceError 400 that names the field */
  async function check({ tenant_number }: Caller, config: PushConfig): Promise<void> {
    requireHeaders(config);
    const problem = await urlProblem(config.url, tenant_number);
    if (problem !== undefined) throw invalid('url', problem);
  }

  return {
    check,

    /** Adds a configuration to a packet, or replaces the one with its id; returns it with its id. @throws ServiceError 400, 403, 404, 409 */
    async put(caller: Caller, packetId: string, config: PushConfig): Promise<PushConfig> {
      requireRight(caller, acts.setPush);
      requireLasting(caller);
      await check(caller, config);
      const now = clock();
      const at = now.toISOString();
      const { id: name = newId(now), url, token: secret, authentication } = { ...config, id: config.id || undefined };
      const maker = { key_id: caller.key_id, key_origin: caller.origin };
      const given = { ...maker, url, secret, authentication: authentication === undefined ? null : JSON.stringify(authentication) };
      await store.of(caller).commit({
        tenantId: caller.tenant_id,
        packets: [packetId],
        pushesOf: packetId,
        work({ packets, webhooks, trail }) {
          const packet = packets.get(packetId);
          if (packet === undefined) throw notFound('packet');
          requireKept(packet);
          const known = webhooks.ofPacket(packetId);
          const stored = known.find((push) => push.name === name && push.seq !== 0);
          if (stored !== undefined && !isSeenBy(caller, stored)) throw conflict('The id is taken.');
          if (stored === undefined && known.length >= maxPushes)
            throw conflict(`The task has ${maxPushes} push notification configurations, the maximum; delete one first.`);
          const id = stored?.id ?? newId(now);
          if (stored === undefined) webhooks.insert({ ...fresh, ...given, id, name, for_packet: packetId, created_at: at, updated_at: at });
          else webhooks.save(id, { ...stored, ...given, ...working, updated_at: at });
          const details = { webhook_id: id, packet_id: packetId };
          trail.audit(auditRecord(caller, 'webhook', stored === undefined ? 'created' : 'updated', details), provenanceOf(caller, now));
        },
      });
      return { ...config, id: name };
    },

    /** The configurations of a packet that the caller sees, without their secrets. @throws ServiceError 403 */
    async list(caller: Caller, packetId: string): Promise<PushConfig[]> {
      requireRight(caller, acts.listPushes);
      return (await store.of(caller).webhooks.ofPacket(packetId)).filter((push) => isSeenBy(caller, push)).map(shownPush);
    },

    /** Removes a configuration, if there is one with this id. Its pending deliveries are cancelled. @throws ServiceError 403 */
    async remove(caller: Caller, packetId: string, name: string): Promise<void> {
      requireRight(caller, acts.removePush);
      const now = clock();
      await store.of(caller).commit({
        tenantId: caller.tenant_id,
        packets: [packetId],
        pushesOf: packetId,
        work({ packets, webhooks, trail }) {
          if (packets.get(packetId) === undefined) return;
          for (const stored of webhooks.ofPacket(packetId).filter((push) => push.name === name && isSeenBy(caller, push))) {
            webhooks.remove(stored.id, { ...stored, active: false, updated_at: now.toISOString(), removed_at: now.toISOString() });
            const details = { webhook_id: stored.id, packet_id: packetId };
            trail.audit(auditRecord(caller, 'webhook', 'deleted', details), provenanceOf(caller, now));
          }
        },
      });
    },
  };
}

/** Whether a caller sees a configuration: one that sees its own sees those that its key, or one that it replaces, set. */
const isSeenBy = ({ sight, origin }: Caller, { key_origin }: Pick<PushRow, 'key_origin'>): boolean =>
  sight === undefined || key_origin === origin;

export type PushService = ReturnType<typeof createPushService>;

/** A configuration that is set anew works, whatever became of it before. */
const working = { active: true, disabled_reason: null, failing_since: null };
const noSecrets = { old_secret: null, old_secret_until: null, removed_at: null };
const fresh = { ...noChannel, ...working, ...noSecrets, seq: 0, kind: 'push', events: [] } satisfies Partial<StoredWebhook>;

function shownPush({ name, url, authentication }: PushRow): PushConfig {
  const scheme = authentication === null ? undefined : readJson<{ scheme: string }>(authentication).scheme;
  return { id: name!, url, token: '', authentication: scheme === undefined ? undefined : { scheme, credentials: '' } };
}
