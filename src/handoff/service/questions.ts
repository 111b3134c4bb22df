import { invalid, notFound } from '../../kit/errors.ts';
import { readJson } from '../../kit/json.ts';
import { isId } from '../../kit/uuid.ts';
import type { Packet } from '../model/packet.ts';
import type { QuestionView } from '../model/question.ts';
import { shownText } from '../rules/question.ts';
import { type AskedRecord, isAwaited, latestQuestion } from '../rules/question-state.ts';
import type { StoredQuestion } from '../store/questions.ts';
import type { Caller } from './authentication.ts';
import { readCursor, writeCursor } from './cursor.ts';
import type { ServiceDependencies } from './dependencies.ts';
import type { PacketViews } from './packet-views.ts';

interface QuestionDependencies extends Pick<ServiceDependencies, 'store' | 'clock'> {
  views: PacketViews;
}

/** Reads the questions that were asked of packets. */
export function createQuestionService({ store, views, clock }: QuestionDependencies) {
  async function packetOf(caller: Caller, id: string): Promise<Packet> {
    const view = isId(id) ? await views.of(caller, id) : undefined;
    if (view === undefined) throw notFound('packet');
    return view.packet;
  }

  /** The question that the packet awaits an answer to. */
  function openQuestionOf(packet: Packet): QuestionView | undefined {
    const latest = latestQuestion(packet, clock());
    if (!isAwaited(packet) || (latest.state !== 'open' && latest.state !== 'timed_out')) return undefined;
    return viewOf(latest, { state: latest.state, shown: shownText(packet, latest), replaced_by: null });
  }

  return {
    /** @throws ServiceError 404 for an unknown packet or question */
    async get(caller: Caller, packetId: string, questionId: string): Promise<QuestionView> {
      const open = openQuestionOf(await packetOf(caller, packetId));
      if (open?.question_id === questionId) return open;
      const stored = isId(questionId) ? await store.of(caller).questions.find(packetId, questionId) : undefined;
      if (stored === undefined) throw notFound('question');
      return storedView(stored);
    },

    /** A page of the questions of a packet, oldest first. */
    async list(caller: Caller, packetId: string, { limit = 50, cursor, key }: { limit?: number; cursor?: string; key?: string }) {
      const latest = openQuestionOf(await packetOf(caller, packetId));
      const open = key === undefined || latest?.question.key === key ? latest : undefined;
      const scope = `questions ${caller.tenant_id} ${packetId} ${key ?? ''}`;
      const after = cursor === undefined ? 0 : Number(readCursor(scope, cursor));
      if (!Number.isSafeInteger(after)) throw invalid('cursor', 'This cursor does not belong to this list.');
      const { questions: stored, hasMore } = await store.of(caller).questions.page(packetId, { after, limit, key });
      const questions = stored.map(storedView);
      // It may have ended since its packet was read.
      const isLast = !hasMore && open !== undefined && questions.every(({ question_id }) => question_id !== open.question_id);
      const fits = isLast && questions.length < limit;
      if (fits) questions.push(open);
      const next = hasMore || (isLast && !fits) ? stored.at(-1)!.seq : undefined;
      return { questions, next_cursor: next === undefined ? null : writeCursor(scope, String(next)) };
    },
  };
}

export type QuestionService = ReturnType<typeof createQuestionService>;

function viewOf(
  { question, asked, answer }: AskedRecord,
  { state, shown, replaced_by }: Pick<QuestionView, 'state' | 'replaced_by'> & { shown: string | null },
): QuestionView {
  const { question_id, asked_by, requested_at, expires_at, digest } = asked;
  return {
    ...{ question_id, state, question, asked_by, requested_at, expires_at },
    shown: shown === null ? null : (readJson(shown) as Record<string, unknown>),
    ...{ digest, answer, approvals: asked.approvals ?? [], replaced_by },
  };
}

const storedView = ({ record, state, shown, replaced_by }: StoredQuestion): QuestionView =>
  viewOf(readJson(record) as AskedRecord, { state, shown, replaced_by });
