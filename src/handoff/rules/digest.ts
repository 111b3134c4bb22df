import { hash } from 'node:crypto';

import type { Packet } from '../model/packet.ts';

/** JSON in the canonical form of RFC 8785. */
export function canonicalJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  // The default order of strings is that of their UTF-16 code units, as the RFC wants it.
  const members = Object.keys(value)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonicalJson((value as Record<string, unknown>)[name])}`);
  return `{${members.join(',')}}`;
}

/** The SHA-256, in hex, of what a person is shown to answer the question of a packet. */
export function digestOf({ hitl, context, actions, decisions }: Packet & { hitl: NonNullable<Packet['hitl']> }): string {
  const { question, reason, options = null, schema = null } = hitl;
  return hash(
    'sha256',
    canonicalJson({ question, reason, options, schema, summary: context.summary, pending: actions.pending, decisions }),
  );
}
