import { createHmac } from 'node:crypto';

/** What a delivery is signed with and for. */
export interface Signed {
  /** The event's id: the same for every webhook and attempt. */
  readonly eventId: string;
  /** The bytes that are sent, or their text. */
  readonly body: Buffer | string;
  /** The secrets in force, the newest first; their UTF-8 bytes are the keys. */
  readonly secrets: readonly string[];
  readonly now: Date;
}

/**
 * The headers that sign a delivery: `X-SERVICE-Signature` over the raw body, by the newest secret; and the trio of
 * Standard Webhooks (https://www.standardwebhooks.com), one signature for each secret, with the time, so that a receiver can
 * refuse what was sent before.
 */
export function signatureHeaders({ eventId, body, secrets, now }: Signed): Record<string, string> {
  const timestamp = Math.floor(now.getTime() / 1000);
  const dated = (secret: string) => createHmac('sha256', secret).update(`${eventId}.${timestamp}.`).update(body).digest('base64');
  return {
    'x-service-signature': `sha256=${createHmac('sha256', secrets[0]!).update(body).digest('hex')}`,
    'webhook-id': eventId,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': secrets.map((secret) => `v1,${dated(secret)}`).join(' '),
  };
}
