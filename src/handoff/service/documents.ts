import type { Clock } from '../../kit/clock.ts';
import { conflict, invalid, notFound, ServiceError } from '../../kit/errors.ts';
import { entityTagOf, isKnown, requireMatch } from '../../kit/etag.ts';
import type { DocumentKind, StoredDocument } from '../store/documents.ts';
import type { Provenance } from '../store/provenance.ts';
import type { Store } from '../store/store.ts';
import type { Transaction } from '../store/transaction.ts';
import { type Caller, provenanceOf } from './authentication.ts';
import { readCursor, writeCursor } from './cursor.ts';
import { auditRecord } from './trail.ts';

/** What a request expects of the document that it changes. */
export interface Preconditions {
  readonly ifMatch?: string | undefined;
  readonly ifNoneMatch?: string | undefined;
}

/** A kind of documents that requests publish. */
export interface DocumentNoun {
  readonly kind: Exclude<DocumentKind, 'policy_version'>;
  /** What sentences and audit entries call it. */
  readonly what: string;
  /** Several of them. */
  readonly many: string;
  /** The field that has its name. */
  readonly field: string;
  /** The most of them that a tenant may have. */
  readonly most: number;
  /** The answer when there is none. */
  readonly missing?: () => ServiceError;
}

/** What else a change of a document does, in its unit of work. */
export interface Beside {
  /** The schedules that it changes. */
  readonly schedulesOf: readonly string[];
  /** Whether the caller may know of the document and change it, judged before its preconditions. @throws ServiceError */
  judge(transaction: Transaction): void;
  /** `stored` is the document after the change; a removed one is empty. */
  work(transaction: Transaction, change: PublishedDocument & { readonly isChanged: boolean }, at: Provenance): void;
}

/** A document as published, and whether none had its name before. */
export interface PublishedDocument {
  readonly stored: StoredDocument;
  readonly isNew: boolean;
}

/** The items of a page, if a request does not say. */
const defaultLimit = 50;

/** The longest name of a document. */
const maxName = 512;

/** Whether a text can be the name of a document. */
export const isDocumentName = (text: string): boolean => text.length > 0 && text.length <= maxName && !text.includes('\0');

/** The operations on documents that are published under names, each as a whole and in versions. Who may do what is decided before. */
export function createDocumentService({ store, clock }: { readonly store: Store; readonly clock: Clock }) {
  /** Stores the next version of a document, or its removal (null), in one unit of work. The same document again changes nothing. */
  function change(
    caller: Caller,
    noun: DocumentNoun,
    name: string,
    document: string | null,
    { ifMatch, ifNoneMatch }: Preconditions,
    beside?: Beside,
  ): Promise<PublishedDocument> {
    const { kind, what, many, field, most, missing = () => notFound(what) } = noun;
    const at = provenanceOf(caller, clock());
    const now = at.now.toISOString();
    return store.of(caller).commit({
      documentsOf: { kind, name },
      schedulesOf: beside?.schedulesOf,
      work(transaction) {
        const { documents, trail } = transaction;
        const before = documents.named(kind, name);
        const published = before?.removed_at === null ? before : undefined;
        if (published !== undefined) beside?.judge(transaction);
        if (published === undefined && document === null) throw missing();
        if (published === undefined && ifMatch !== undefined)
          throw new ServiceError('PRECONDITION_FAILED', `If-Match names a ${what}; there is none.`);
        if (published !== undefined) {
          const etag = entityTagOf(published.version);
          requireMatch(ifMatch, etag, what);
          if (ifNoneMatch !== undefined && isKnown(ifNoneMatch, etag))
            throw new ServiceError('PRECONDITION_FAILED', `The ${what} exists; its ETag is ${etag} now.`);
        }
        const isNew = published === undefined;
        if (published !== undefined && published.document === document) {
          beside?.work(transaction, { stored: published, isNew, isChanged: false }, at);
          return { stored: published, isNew };
        }
        const stored: StoredDocument =
          document === null
            ? { ...published!, document: '', updated_at: now, removed_at: now }
            : {
                ...{ kind, name, version: (before?.version ?? 0) + 1, document },
                ...{ created_at: published?.created_at ?? now, updated_at: now, removed_at: null },
              };
        if (isNew && documents.published(kind) >= most) throw conflict(`The tenant has ${most} ${many}, the maximum; remove one first.`);
        documents.publish(stored);
        if (kind === 'policy' && document !== null)
          documents.publish({ ...stored, kind: 'policy_version', name: versionName(name, stored.version) });
        const action = document === null ? 'deleted' : isNew ? 'created' : 'updated';
        trail.audit(auditRecord(caller, what, action, { [field]: name, version: stored.version }), at);
        beside?.work(transaction, { stored, isNew, isChanged: true }, at);
        return { stored, isNew };
      },
    });
  }

  return {
    /** Publishes a document under a name. @throws ServiceError 400, 409, 412 */
    async put(
      caller: Caller,
      noun: DocumentNoun,
      name: string,
      document: unknown,
      preconditions: Preconditions = {},
      beside?: Beside,
    ): Promise<PublishedDocument> {
      if (!isDocumentName(name)) throw invalid(noun.field, `${noun.field} must have 1 to ${maxName} characters, and no NUL.`);
      return change(caller, noun, name, JSON.stringify(document), preconditions, beside);
    },

    /** Removes a document. Its versions go on after it. @throws ServiceError 404, 412 */
    async remove(caller: Caller, noun: DocumentNoun, name: string, preconditions: Preconditions = {}, beside?: Beside): Promise<void> {
      if (!isDocumentName(name)) throw (noun.missing ?? (() => notFound(noun.what)))();
      await change(caller, noun, name, null, preconditions, beside);
    },

    /** A document. @throws ServiceError 404 */
    async get(caller: Caller, { kind, what, missing = () => notFound(what) }: DocumentNoun, name: string): Promise<StoredDocument> {
      const found = isDocumentName(name) ? await store.of(caller).documents.find(kind, name) : undefined;
      if (found === undefined) throw missing();
      return found;
    },

    /** A page of the documents of a kind, by name; those of them that `shows` names. The read is cancelled by `signal`. */
    async page(
      caller: Caller,
      { kind, most }: DocumentNoun,
      { limit = defaultLimit, cursor }: { readonly limit?: number; readonly cursor?: string },
      signal: AbortSignal,
      shows?: (stored: StoredDocument) => boolean,
    ): Promise<{ readonly items: StoredDocument[]; readonly next_cursor: string | null }> {
      const scope = `${caller.tenant_id} ${kind}`;
      const after = cursor === undefined ? '' : readCursor(scope, cursor);
      const read = await store.of(caller, signal).documents.page(kind, after, shows === undefined ? limit + 1 : most);
      const rows = shows === undefined ? read : read.filter(shows);
      const items = rows.slice(0, limit);
      const last = items.at(-1)?.name;
      return { items, next_cursor: rows.length > limit && last !== undefined ? writeCursor(scope, last) : null };
    },
  };
}

/** The name under which a version of a policy stays. */
export const versionName = (name: string, version: number): string => `${name}@${version}`;
