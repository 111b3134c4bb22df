import { hash } from 'node:crypto';

import { canonicalJson } from '../../kit/canonical-json.ts';
import type { Packet } from '../model/packet.ts';

/** The SHA-256, in hex, of what a person is shown to answer the question of a packet. */
export function digestOf({ hitl, context, actions, decisions }: Packet & { hitl: NonNullable<Packet['hitl']> }): string {
  const { question, reason, options = null, schema = null } = hitl;
  return hash(
    'sha256',
    canonicalJson({ question, reason, options, schema, summary: context.summary, pending: actions.pending, decisions }),
  );
}
