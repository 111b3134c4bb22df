import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';

import { readJson } from '../../kit/json.ts';
import { readText } from '../../kit/text-file.ts';
import { ChainCheck, ChainFault, type KnownHead } from '../rules/chain-check.ts';
import type { Context } from './context.ts';
import { type Options, reading } from './rows.ts';
import { CliError } from './terminal.ts';

/** How many positions of the audit log one request asks for. */
const perRequest = 1_000;

/** `audit export`: prints the audit log as JSON Lines or CSV, a range at a time. */
export async function exportAudit(context: Context, { from, to, as, ...options }: Options): Promise<void> {
  const filter = filterIn(options);
  const client = await context.client();
  const head = await client.auditHead();
  const last = await reading(context, () => Math.min(to === undefined ? head.position : Number(to), head.position));
  const format = as === 'csv' ? 'csv' : 'jsonl';
  let next = from === undefined ? 1 : Number(from);
  let isFirst = true;
  do {
    const upTo = Math.min(next + perRequest - 1, last);
    const text = await client.exportAudit({ query: { from: next, ...(upTo >= next ? { to: upTo } : {}), format, ...filter } });
    const lines = await reading(context, () => text.split('\n').filter((line) => line !== ''));
    // Of JSON Lines the first has the range, the last the head.
    const isLast = upTo >= last;
    const first = await reading(context, () => (format === 'csv' ? lines[0]! : withEnd(lines[0]!, last)));
    if (isFirst) context.out.line(first);
    for (const line of lines.slice(1, format === 'csv' || isLast ? undefined : -1)) context.out.line(line);
    isFirst = false;
    next = upTo + 1;
  } while (next <= last);
}

/** The filter of an export, from flags. */
function filterIn({ actor, action, packet, key, person, subject, createdAfter, createdBefore }: Partial<Options>) {
  const given = {
    actor,
    action,
    packet_id: packet,
    key_id: key,
    person,
    subject,
    created_after: createdAfter,
    created_before: createdBefore,
  };
  return Object.fromEntries(Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])));
}

/** The header of an export that ends with this position. */
function withEnd(line: string, to: number): string {
  const { header } = readJson<{ header: object }>(line);
  return JSON.stringify({ header: { ...header, to } });
}

/** `audit verify`: checks an exported audit log without a service. */
export async function verifyAudit(context: Context, { head, key, database, tenant, config }: Options, file?: string): Promise<void> {
  if (database === true) {
    if (file !== undefined || key !== undefined) throw new CliError('--database takes no file and no --key.', 2);
    return verifyDatabaseOf(context, { head, tenant, config });
  }
  if (file === undefined) throw new CliError('Name a file, or --database.', 2);
  const check = new ChainCheck({ known: knownHead(head), publicKey: key === undefined ? undefined : textOf(String(key)) });
  try {
    for await (const line of createInterface({ input: createReadStream(file, 'utf8'), crlfDelay: Number.POSITIVE_INFINITY })) {
      if (line !== '') check.take(parsed(line));
    }
  } catch (error) {
    if (error instanceof ChainFault) throw new CliError(error.message, 1);
    throw new CliError(`${file} can't be read: ${(error as Error).message}`, 2, { cause: error });
  }
  try {
    const { entries, from, to, isFiltered, isSigned } = check.summary();
    const what = isFiltered ? `${entries} selected entries` : `${entries} entries, positions ${from} to ${to},`;
    context.say(`The audit log holds: ${what} were checked${isSigned ? ', and the signature of the head' : ''}.`);
  } catch (error) {
    throw new CliError((error as Error).message, 1, { cause: error });
  }
}

/** Checks the audit logs in the database of the settings. */
async function verifyDatabaseOf(context: Context, { head, tenant, config }: Partial<Options>): Promise<void> {
  const { verifyDatabase } = await import('../maintenance.ts');
  const textOf = (value: unknown) => (value === undefined ? undefined : String(value));
  const source = { environment: context.environment, config: textOf(config), tenant: textOf(tenant) };
  try {
    const { tenants, entries } = await verifyDatabase(source, knownHead(head));
    const end = head === undefined ? ' Only a head that was kept elsewhere shows whether entries at the end were cut off.' : '';
    context.say(`The audit logs hold: entries checked: ${entries}, tenants: ${tenants}.${end}`);
  } catch (error) {
    if (error instanceof ChainFault) throw new CliError(error.message, 1);
    if (error instanceof CliError) throw error;
    throw new CliError((error as Error).message, 2, { cause: error });
  }
}

function parsed(line: string): unknown {
  try {
    return readJson(line);
  } catch {
    throw new ChainFault('A line is no JSON.');
  }
}

/** A head that was kept: `POSITION:DIGEST`, or a file with the answer of `GET /audit/head`. */
function knownHead(given: unknown): KnownHead | undefined {
  if (given === undefined) return undefined;
  const [, position, digest] = /^(\d+):([0-9a-f]{64})$/.exec(String(given)) ?? [];
  if (position !== undefined) return { position: Number(position), digest: digest! };
  const head = parsed(textOf(String(given))) as KnownHead;
  if (typeof head?.position === 'number' && typeof head.digest === 'string') return head;
  throw new CliError('--head takes POSITION:DIGEST, or a file with a head.', 2);
}

function textOf(path: string): string {
  try {
    return readText(path);
  } catch (error) {
    throw new CliError(`${path} can't be read: ${(error as Error).message}`, 2, { cause: error });
  }
}
