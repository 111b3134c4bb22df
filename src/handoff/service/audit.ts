import { createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto';

import { eachInTurn } from '../../kit/awaitable.ts';
import { invalid } from '../../kit/errors.ts';
import { readJson } from '../../kit/json.ts';
import type { Turns } from '../../kit/turns.ts';
import type { AuditEntry, AuditHead, AuditKeys } from '../model/audit.ts';
import { csvHead, csvRowsOf } from '../rules/audit-file.ts';
import { headText, noDigest, signingKeyId } from '../rules/chain.ts';
import type { AuditFilter } from '../store/audit-filter.ts';
import { anchoredCounter, type ChainRow, type MovedHead } from '../store/trail.ts';
import type { Caller } from './authentication.ts';
import type { ServiceDependencies } from './dependencies.ts';

/** Signs heads of trails with an Ed25519 key. */
export interface HeadSigner {
  /** See `signingKeyId`. */
  readonly keyId: string;
  /** The public key as PEM. */
  readonly publicKey: string;
  /** The signature in base64. */
  sign(text: string): string;
}

/** A signer by a private key. @throws Error if the PEM is no private key of Ed25519 */
export function createHeadSigner(pem: string): HeadSigner {
  const key: KeyObject = createPrivateKey(pem);
  if (key.asymmetricKeyType !== 'ed25519') throw new Error('The key is not of Ed25519.');
  const publicKey = createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString();
  return {
    keyId: signingKeyId(publicKey),
    publicKey,
    sign: (text) => sign(null, Buffer.from(text), key).toString('base64'),
  };
}

/** Which entries an export has: a range of positions, both inclusive, and filters. */
export interface ExportRange extends AuditFilter {
  readonly from?: number;
  readonly to?: number;
}

/** How many entries an export reads at once. */
const perRead = 200;

/** The most heads that one round writes. */
const headsPerRound = 500;

interface AuditDependencies extends ServiceDependencies {
  turns: Turns;
  signer: HeadSigner | undefined;
  /** Writes a head to the log. */
  onHead: (head: AuditHead) => void;
}

/** The head of a tenant's chain of digests, and exports of the chain. */
export function createAuditService({ store, clock, newId, turns, signer, onHead }: AuditDependencies) {
  async function headOf(caller: Caller): Promise<AuditHead> {
    const last = await store.of(caller).trail.head();
    const head = { tenant_id: caller.tenant_id, position: last?.position ?? 0, digest: last?.digest ?? noDigest, at: last?.at || null };
    return signed(head);
  }

  const signed = (head: AuditHead): AuditHead =>
    signer === undefined ? head : { ...head, signature: signer.sign(headText(head)), key_id: signer.keyId };

  /** Writes a head to the log and to webhooks that name the event, unless another instance has; returns whether it did. */
  async function anchorOne({ tenant, tenant_id, position, digest, at }: MovedHead): Promise<void> {
    const now = clock();
    const head = signed({ tenant_id, position, digest, at });
    const timestamp = now.toISOString();
    const isNew = await store.whole(tenant).commit({
      counters: [anchoredCounter],
      notifies: true,
      work({ counters, deliveries, webhooks }) {
        const before = counters.value(anchoredCounter);
        if (before >= position) return false;
        counters.add(anchoredCounter, position - before);
        const subscribed = webhooks.subscribedTo('audit.head');
        const body = () => JSON.stringify({ type: 'audit.head', packet_id: null, data: head, timestamp });
        if (subscribed.length > 0) deliveries.send({ id: newId(now), type: 'audit.head', packet_id: null, timestamp, body }, subscribed);
        return true;
      },
    });
    if (isNew) onHead(head);
  }

  /** The entries of a range in order, a read at a time, with those that are selected. */
  async function* entriesOf(caller: Caller, from: number, to: number, select: Select): AsyncGenerator<Selected, void> {
    let next = from;
    while (next <= to) {
      await turns.next(caller.tenant_number);
      const rows = await store.of(caller).trail.chain(next, to, perRead);
      if (rows.length === 0) return;
      yield { rows, selected: await select(rows) };
      next = rows.at(-1)!.position + 1;
    }
  }

  return {
    head: headOf,

    /** Writes heads that have moved since they were last written to the log, and to webhooks that name `audit.head`; returns whether there may be more. */
    anchor(): Promise<boolean> {
      return store.trail.moved(headsPerRound, (heads) =>
        eachInTurn(heads, async (head) => {
          await turns.next(head.tenant);
          await anchorOne(head);
        }),
      );
    },

    /** The public keys that heads are signed with. */
    keys: (): AuditKeys => ({ keys: signer === undefined ? [] : [{ key_id: signer.keyId, public_key: signer.publicKey }] }),

    /**
     * The entries of a range as JSON Lines with their places in the chain, or as CSV without them, in pieces.
     * @throws ServiceError 400 on `from`
     */
    async export(caller: Caller, { from = 1, to, ...filter }: ExportRange, format: 'jsonl' | 'csv'): Promise<AsyncIterable<string>> {
      const head = await headOf(caller);
      const last = Math.min(to ?? head.position, head.position);
      if (to !== undefined && from > to) throw invalid('from', 'from must not be greater than to.');
      const select = matching(filter, (digest, ids) => store.of(caller).trail.about(digest, ids));
      if (format === 'csv') return csvLines(entriesOf(caller, from, last, select));
      const before = from === 1 ? [] : await store.of(caller).trail.chain(from - 1, from - 1, 1);
      const header = { version: 1, tenant_id: caller.tenant_id, from, to: last, previous: before[0]?.digest ?? noDigest };
      return jsonLines({ ...header, ...(Object.keys(filter).length === 0 ? {} : { filter }) }, entriesOf(caller, from, last, select), head);
    },
  };
}

export type AuditService = ReturnType<typeof createAuditService>;

/** Selects the entries that satisfy all of a filter. */
type Select = (rows: readonly ChainRow[]) => Promise<ChainRow[]>;

/** @param about which of these packets hold data of a person */
function matching(
  { actor, action, packet_id, key_id, person, subject_digest, created_after, created_before }: AuditFilter,
  about: (subjectDigest: string, packetIds: readonly string[]) => Promise<ReadonlySet<string>>,
): Select {
  const [after, before] = [created_after?.toISOString(), created_before?.toISOString()];
  const isOf = (row: ChainRow) => {
    const { name, subject } = row.person === null ? {} : readJson<{ name?: string; subject?: string }>(row.person);
    return name === person || subject === person;
  };
  const isMatch = (row: ChainRow) =>
    (actor === undefined || row.actor === actor) &&
    (action === undefined || row.event_type === action) &&
    (packet_id === undefined || row.packet_id === packet_id) &&
    (key_id === undefined || row.key_id === key_id) &&
    (person === undefined || isOf(row)) &&
    (after === undefined || row.timestamp >= after) &&
    (before === undefined || row.timestamp <= before);
  return async (rows) => {
    const found = rows.filter(isMatch);
    if (subject_digest === undefined) return found;
    const named = await about(subject_digest, [...new Set(found.flatMap((row) => row.packet_id ?? []))]);
    return found.filter((row) => row.packet_id !== null && named.has(row.packet_id));
  };
}

/** Entries in order, and those of them that an export has. */
interface Selected {
  readonly rows: readonly ChainRow[];
  readonly selected: readonly ChainRow[];
}

async function* csvLines(reads: AsyncIterable<Selected>): AsyncGenerator<string, void> {
  yield csvHead;
  for await (const { selected } of reads) yield csvRowsOf(selected.map(auditEntryOf));
}

async function* jsonLines(header: object, reads: AsyncIterable<Selected>, head: AuditHead): AsyncGenerator<string, void> {
  yield `${JSON.stringify({ header })}\n`;
  let previous = (header as { previous: string }).previous;
  for await (const { rows, selected } of reads) {
    const isSelected = new Set(selected);
    const lines: string[] = [];
    for (const row of rows) {
      if (isSelected.has(row)) lines.push(`${JSON.stringify(lineOf(row, previous))}\n`);
      previous = row.digest;
    }
    yield lines.join('');
  }
  yield `${JSON.stringify({ head })}\n`;
}

/** A stored entry as a line of an export. */
function lineOf({ id, event_type, person, details, ...row }: ChainRow, previous: string) {
  const { position, resource, packet_id, actor, key_id, timestamp, details_digest, digest, salt } = row;
  const who = person === null ? null : readJson(person);
  const covered = { position, previous, event_id: id, type: event_type, resource, packet_id, actor, key_id, person: who, timestamp };
  return { ...covered, details_digest, digest, salt, details: details === null ? null : readJson(details) };
}

/** A stored entry as the audit log shows it. Its details are empty once they are erased. */
export function auditEntryOf({ id, packet_id, actor, key_id, event_type, resource, details, timestamp }: AuditEntryRow): AuditEntry {
  return { id, packet_id, actor, key_id, action: event_type, resource, details: details === null ? {} : readJson(details), timestamp };
}

type AuditEntryRow = Pick<ChainRow, 'id' | 'packet_id' | 'actor' | 'key_id' | 'event_type' | 'resource' | 'details' | 'timestamp'>;
