import { createPublicKey, verify } from 'node:crypto';
import type { AuditHead } from '../model/audit.ts';
import { canonicalJson } from './canonical-json.ts';
import { type ChainedEntry, type ChainHead, detailsDigest, entryDigest, headText, signingKeyId } from './chain.ts';

/** A head that was kept elsewhere, with which an export is compared. */
export type KnownHead = Pick<ChainHead, 'position' | 'digest'>;

/** Why an export of an audit log does not hold. */
export class ChainFault extends Error {}

interface Header {
  readonly tenant_id: string;
  readonly from: number;
  readonly to: number;
  readonly previous: string;
  readonly filter?: object;
}

interface Entry extends ChainedEntry {
  readonly position: number;
  readonly previous: string;
  readonly digest: string;
  readonly salt: string | null;
  readonly details: object | null;
}

/** The members of each kind of line. If a member is missing or there are more, the file was changed. */
const headerMembers = ['version', 'tenant_id', 'from', 'to', 'previous'];
const headMembers = ['tenant_id', 'position', 'digest', 'at'];
const signatureMembers = ['signature', 'key_id'];
const placeMembers = ['position', 'previous', 'digest'];
const coveredMembers = ['event_id', 'type', 'resource', 'packet_id', 'actor', 'key_id', 'person', 'timestamp', 'details_digest'];
const entryMembers = [...placeMembers, ...coveredMembers, 'salt', 'details'];

function requireMembers(value: unknown, what: string, members: readonly string[], optional: readonly string[] = []): void {
  const isObject = typeof value === 'object' && value !== null;
  if (!isObject || !members.every((name) => name in value)) throw new ChainFault(`${what} lacks a member.`);
  const more = Object.keys(value).find((name) => !members.includes(name) && !optional.includes(name));
  if (more !== undefined) throw new ChainFault(`${what} has an unknown member ${JSON.stringify(more)}.`);
}

/** A salt as it is written: an upper-case digit would be the same bytes. */
const saltPattern = /^[0-9a-f]{32}$/;

const canonicalOf = (details: object | null | undefined): string | null =>
  details === null || details === undefined ? null : canonicalJson(details);

/** Checks an export of an audit log, line by line, in constant memory. */
export class ChainCheck {
  readonly #known: KnownHead | undefined;
  readonly #publicKey: string | undefined;
  #header: Header | undefined;
  #position = 0;
  #digest = '';
  #entries = 0;
  #head: AuditHead | undefined;
  #at: string | null = null;
  #isKnownSeen = false;

  /** @param publicKey of the signature of the head, as PEM; undefined: the signature is not checked */
  constructor({ known, publicKey }: { known?: KnownHead | undefined; publicKey?: string | undefined } = {}) {
    this.#known = known;
    this.#publicKey = publicKey;
  }

  /** Checks the next line, parsed. @throws ChainFault with the first entry that does not hold */
  take(line: unknown): void {
    if (typeof line !== 'object' || line === null) throw new ChainFault('A line is no JSON object.');
    if (this.#head !== undefined) throw new ChainFault('There is a line after the head.');
    if (this.#header === undefined) this.#begin(line);
    else if ('head' in line) {
      requireMembers(line, 'The line with the head', ['head']);
      this.#end(line.head as AuditHead);
    } else {
      requireMembers(line, `The entry after position ${this.#position}`, entryMembers);
      this.#entry(line as Entry);
    }
  }

  /** Checks the next entry as it is stored. @param details their canonical text; null once they are erased */
  takeStored(entry: Omit<Entry, 'details'>, details: string | null): void {
    this.#entry(entry, details);
  }

  /** What was checked, after the last line. @throws ChainFault if the file ends too early */
  summary(): { entries: number; from: number; to: number; isFiltered: boolean; isSigned: boolean } {
    const head = this.#head;
    if (this.#header === undefined || head === undefined) throw new ChainFault('The file ends before the line with the head.');
    const { from, to, filter } = this.#header;
    return { entries: this.#entries, from, to, isFiltered: filter !== undefined, isSigned: this.#publicKey !== undefined };
  }

  #begin(line: object): void {
    if (!('header' in line)) throw new ChainFault('The first line is no header.');
    requireMembers(line, 'The first line', ['header']);
    requireMembers(line.header, 'The header', headerMembers, ['filter']);
    if ((line.header as { version: unknown }).version !== 1) throw new ChainFault('The file is of an unknown version.');
    this.#header = line.header as Header;
    this.#position = this.#header.from - 1;
    this.#digest = this.#header.previous;
    this.#compareKnown();
  }

  #entry(entry: Omit<Entry, 'details'> & { readonly details?: object | null }, text = canonicalOf(entry.details)): void {
    const { position, previous, digest, salt, details_digest } = entry;
    const isFiltered = this.#header!.filter !== undefined;
    const what = `The entry at position ${position}`;
    const next = this.#position + 1;
    if (!Number.isSafeInteger(position)) throw new ChainFault('An entry has no position.');
    if (isFiltered ? position < next : position !== next) throw new ChainFault(`${what} follows position ${this.#position}.`);
    if (!(isFiltered && position > next) && previous !== this.#digest) throw new ChainFault(`${what} does not follow the entry before it.`);
    if (entryDigest(entry, { position, previous }) !== digest) throw new ChainFault(`${what} was changed: its digest does not hold.`);
    const isErased = text === null && salt === null;
    if (!isErased && (text === null || salt === null || !saltPattern.test(salt) || detailsDigest(salt, text) !== details_digest))
      throw new ChainFault(`${what} was changed: the digest of its details does not hold.`);
    this.#position = position;
    this.#digest = digest;
    this.#at = entry.timestamp;
    this.#entries += 1;
    this.#compareKnown();
  }

  /** Compares the entry with a head that was kept, if it is at its position. */
  #compareKnown(): void {
    if (this.#known === undefined || this.#known.position !== this.#position) return;
    if (this.#known.digest !== this.#digest)
      throw new ChainFault(`The entry at position ${this.#position} is not that of the head that was kept.`);
    this.#isKnownSeen = true;
  }

  #end(head: AuditHead): void {
    const { tenant_id, to, filter } = this.#header!;
    requireMembers(head, 'The head', headMembers, signatureMembers);
    if (head.tenant_id !== tenant_id) throw new ChainFault('The head is not of the tenant that the header names.');
    if (filter === undefined && this.#position !== to)
      throw new ChainFault(`Entries are missing: the last one is at position ${this.#position}, not ${to}.`);
    const isLast = filter === undefined && head.position === to;
    // The time of the entry before an empty range is not known.
    const isOfOtherTime = (this.#entries > 0 || to === 0) && head.at !== this.#at;
    if (isLast && (head.digest !== this.#digest || isOfOtherTime)) throw new ChainFault('The head is not the last entry.');
    if (head.position < to) throw new ChainFault(`The head is at position ${head.position}, before the last entry.`);
    if (this.#known !== undefined && !this.#isKnownSeen)
      throw new ChainFault(`There is no entry at position ${this.#known.position}, of the head that was kept.`);
    if (this.#publicKey !== undefined) this.#checkSignature(head, this.#publicKey);
    this.#head = head;
  }

  #checkSignature(head: AuditHead, publicKey: string): void {
    const { signature } = head;
    if (signature === undefined) throw new ChainFault('The head has no signature.');
    const bytes = Buffer.from(signature, 'base64');
    // Other characters may stand for the same bytes.
    const isWritten = bytes.toString('base64') === signature && head.key_id === signingKeyId(publicKey);
    if (!isWritten || !verify(null, Buffer.from(headText(head)), createPublicKey(publicKey), bytes))
      throw new ChainFault('The signature of the head is not by this key.');
  }
}
