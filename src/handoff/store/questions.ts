import { type Generated, type SelectQueryBuilder, sql } from 'kysely';

import type { Awaitable } from '../../kit/awaitable.ts';
import { readJson } from '../../kit/json.ts';
import type { EndedQuestion } from '../rules/answer.ts';
import type { EarlierQuestion } from '../rules/question-key.ts';
import type { Writes } from './engine/group.ts';
import type { Journal } from './engine/journal.ts';
import type { ReadDependencies, ReadScope } from './noun.ts';
import type { RowOf, Tables } from './tables.ts';

declare module './tables.ts' {
  interface Tables {
    /** The questions of packets that have ended. Rows never change; an open question is in the row of its packet. */
    questions: {
      seq: Generated<number>;
      tenant: number;
      packet_id: string;
      question_id: string;
      /** The asker's own name of the question. */
      key: string | null;
      state: EndedQuestion['state'];
      /** What was asked, what the service set and what was answered, as JSON. */
      record: string;
      /** What the person was shown who answered, as JSON. */
      shown: string | null;
      replaced_by: string | null;
      ended_at: string;
      /** 1 for one about an action that was decided. */
      decided: number;
    };
  }
}

/** The ended questions that a unit needs. */
export interface QuestionNeeds {
  /** A locked packet of which it needs the questions: those with a key, or all. */
  readonly questionsOf?: { readonly packetId: string; readonly key: string | undefined } | undefined;
}

/** A stored question. */
export type StoredQuestion = Omit<RowOf<'questions'>, 'tenant' | 'decided'>;

type NewQuestion = Omit<StoredQuestion, 'seq'> & Pick<RowOf<'questions'>, 'decided'>;

/** The ended questions of a tenant's packets: those that units named, and new ones. */
export class QuestionBuffer {
  /** By the id of the packet. */
  readonly found = new Map<string, EarlierQuestion[]>();
  inserted: NewQuestion[] = [];
  readonly #journal: Journal;

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  /** The questions of a packet that the unit names, oldest first, those included that ended in this group. */
  earlier(packetId: string): EarlierQuestion[] {
    const fresh = this.inserted.filter(({ packet_id }) => packet_id === packetId);
    return [...(this.found.get(packetId) ?? []), ...fresh.map(({ question_id, state, record }) => earlierOf(question_id, state, record))];
  }

  /** Keeps a question that has ended. */
  insert(packetId: string, { state, question, asked, answer, shown, replaced_by }: EndedQuestion, now: Date): void {
    this.#journal.push(this.inserted, {
      packet_id: packetId,
      question_id: asked.question_id,
      key: question.key ?? null,
      state,
      record: JSON.stringify({ question, asked, answer }),
      shown,
      replaced_by,
      ended_at: now.toISOString(),
      decided: answer?.decision === undefined ? 0 : 1,
    });
  }
}

function earlierOf(question_id: string, state: EndedQuestion['state'], record: string): EarlierQuestion {
  const { question, answer } = readJson(record) as Pick<EndedQuestion, 'question' | 'answer'>;
  return { question_id, state, question, answer };
}

const writes: Writes<QuestionNeeds, QuestionBuffer> = {
  needs: { questionsOf: true },
  stage: (_tenant, { journal }) => new QuestionBuffer(journal),

  async find(session, group) {
    const wanted = new Map<string, { tenant: number; packet_id: string; key?: string }>();
    for (const { tenant, unit } of group.units) {
      if (unit.questionsOf === undefined) continue;
      const { packetId: packet_id, key } = unit.questionsOf;
      // Different units of a group may name different keys of a packet: then all are read.
      const name = `${tenant} ${packet_id}`;
      wanted.set(name, { tenant, packet_id, ...(key === undefined || wanted.has(name) ? {} : { key }) });
    }
    // Read after the packets are locked, with which all changes of their questions are committed.
    const keyed = [...wanted.values()].filter(({ key }) => key !== undefined);
    const whole = [...wanted.values()].filter(({ key }) => key === undefined);
    const columns = ['tenant', 'packet_id', 'seq', 'question_id', 'state', 'record'];
    const rows = (await Promise.all([keyed, whole].map((keys) => session.read('questions', columns, keys)))).flat();
    rows.sort(([, , one], [, , other]) => Number(one) - Number(other));
    for (const [tenant, packetId, , questionId, state, record] of rows as [number, string, number, string, never, string][]) {
      const { found } = group.of(writes, tenant);
      found.set(packetId, [...(found.get(packetId) ?? []), earlierOf(questionId, state, record)]);
    }
  },

  erase(session, group, erased) {
    for (const { tenant, packet_id } of erased) {
      const own = group.of(writes, tenant);
      own.inserted = own.inserted.filter((question) => question.packet_id !== packet_id);
    }
    session.remove('questions', erased);
  },

  flush(session, group) {
    session.insert(
      'questions',
      group.each(writes, ({ inserted }, tenant) => inserted.map((question) => ({ tenant, ...question }))),
    );
  },
};

const columns = ['seq', 'packet_id', 'question_id', 'key', 'state', 'record', 'shown', 'replaced_by', 'ended_at'] as const;

/** Which questions of a packet to read. */
export interface QuestionPage {
  /** The `seq` of the last question of the page before; 0 for the first page. */
  readonly after: number;
  readonly limit: number;
  readonly key: string | undefined;
}

/** Which decided questions to read. */
export interface DecidedRange {
  readonly since: string | undefined;
  readonly until: string | undefined;
  readonly limit: number;
}

/** The most characters of the questions of a page, which has at least one: what was shown may be as long as a packet. */
const maxPageLength = 4 * 1024 * 1024;

function reads({ database: { reads: db } }: ReadDependencies) {
  const ofTenant = (scope: ReadScope) => {
    const ofPacket = (tenant: number, packetId: string) =>
      db.selectFrom('questions').where('tenant', '=', tenant).where('packet_id', '=', packetId);
    return {
      /** An ended question of a packet. */
      find: (packetId: string, questionId: string): Awaitable<StoredQuestion | undefined> =>
        scope.ofPacket(
          packetId,
          (tenant) => ofPacket(tenant, packetId).select(columns).where('question_id', '=', questionId).executeTakeFirst(),
          undefined,
        ),

      /** The latest decided questions about actions, in a time. */
      actions: ({ since, until, limit }: DecidedRange): Promise<Pick<StoredQuestion, 'packet_id' | 'record'>[]> =>
        db
          .selectFrom('questions')
          .select(['packet_id', 'record'])
          .where('tenant', '=', scope.tenant)
          // As in the partial index.
          .where('decided', '=', sql.lit(1))
          .$if(since !== undefined, (decided) => decided.where('ended_at', '>=', since!))
          .$if(until !== undefined, (decided) => decided.where('ended_at', '<', until!))
          .orderBy('ended_at', 'desc')
          .limit(limit)
          .execute(),

      /** The ended questions of a packet after one, oldest first, and whether there are more. */
      page: (packetId: string, page: QuestionPage): Awaitable<FoundQuestions> =>
        scope.ofPacket(packetId, (tenant) => pageOf(ofPacket(tenant, packetId), page), { questions: [], hasMore: false }),
    };
  };
  return { ofTenant };
}

/** Ended questions of a packet, and whether there are more. */
export interface FoundQuestions {
  readonly questions: StoredQuestion[];
  readonly hasMore: boolean;
}

async function pageOf(
  ofPacket: SelectQueryBuilder<Tables, 'questions', unknown>,
  { after, limit, key }: QuestionPage,
): Promise<FoundQuestions> {
  const wanted = key === undefined ? ofPacket : ofPacket.where('key', '=', key);
  const sizes = await wanted
    .select(['seq', sql<number>`length(record) + coalesce(length(shown), 0)`.as('length')])
    .where('seq', '>', after)
    .orderBy('seq')
    .limit(limit + 1)
    .execute();
  let length = 0;
  const fitting = sizes.slice(0, limit).filter((row, index) => {
    length += Number(row.length);
    return index === 0 || length <= maxPageLength;
  });
  const last = fitting.at(-1);
  if (last === undefined) return { questions: [], hasMore: false };
  const rows = await wanted.select(columns).where('seq', '>', after).where('seq', '<=', last.seq).orderBy('seq').execute();
  return { questions: rows, hasMore: fitting.length < sizes.length };
}

/** The questions of packets that have ended. */
export const questions = { writes, reads };
