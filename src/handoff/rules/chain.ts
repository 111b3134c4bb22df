import { createPublicKey, hash } from 'node:crypto';
import type { AuditHead } from '../model/audit.ts';
import { canonicalJson } from './canonical-json.ts';

/** What the first entry of a trail has as `previous`: 64 zeros. */
export const noDigest = '0'.repeat(64);

/** The members of an entry that its digest covers, besides its place in the chain. */
export interface ChainedEntry {
  readonly event_id: string;
  readonly type: string;
  readonly resource: string;
  readonly packet_id: string | null;
  readonly actor: string;
  readonly key_id: string | null;
  /** The person who signed in; null for everybody else. */
  readonly person: object | null;
  readonly timestamp: string;
  readonly details_digest: string;
}

/** The place of an entry in the chain of its tenant. */
export interface ChainPlace {
  /** From 1, without gaps. */
  readonly position: number;
  /** The digest of the entry before it. */
  readonly previous: string;
}

/** The end of a tenant's trail: the last entry's place and time; without entries position 0 and 64 zeros. */
export type ChainHead = Omit<AuditHead, 'signature' | 'key_id'>;

/** What the signature of a head covers: the canonical JSON (RFC 8785) of its four members. */
export const headText = ({ tenant_id, position, digest, at }: ChainHead): string => canonicalJson({ tenant_id, position, digest, at });

/**
 * What a head names its signing key by: the first 16 hexadecimal digits of SHA-256 of the public key (SPKI, DER).
 * @param publicKey as PEM
 */
export const signingKeyId = (publicKey: string): string =>
  hash('sha256', createPublicKey(publicKey).export({ type: 'spki', format: 'der' })).slice(0, 16);

/**
 * The digest of an entry's details: SHA-256, in lower-case hexadecimal, over 16 random bytes and the UTF-8 of the canonical details
 * (RFC 8785). Without the salt, which is removed with the details, nothing can be guessed from it.
 * @param salt the random bytes, in hexadecimal
 */
export function detailsDigest(salt: string, canonicalDetails: string): string {
  const bytes = Buffer.allocUnsafe(salt.length / 2 + Buffer.byteLength(canonicalDetails));
  bytes.write(canonicalDetails, bytes.write(salt, 'hex'));
  return hash('sha256', bytes);
}

/** The digest of an entry: SHA-256, in lower-case hexadecimal, over the canonical JSON (RFC 8785) of these members. */
export function entryDigest(
  { event_id, type, resource, packet_id, actor, key_id, person, timestamp, details_digest }: ChainedEntry,
  { position, previous }: ChainPlace,
): string {
  // Written in the order of RFC 8785. Only the actor and the person have characters that JSON escapes.
  const of = (value: string | null) => (value === null ? 'null' : `"${value}"`);
  const who = person === null ? 'null' : canonicalJson(person);
  return hash(
    'sha256',
    `{"actor":${JSON.stringify(actor)},"details_digest":"${details_digest}","event_id":"${event_id}","key_id":${of(key_id)},"packet_id":${of(packet_id)},"person":${who},"position":${position},"previous":"${previous}","resource":"${resource}","timestamp":"${timestamp}","type":"${type}"}`,
  );
}
