import { present } from '../face/call.ts';
import { routes } from '../model/api.ts';
import type { Packet } from '../model/packet.ts';
import type { ToldQuestion } from './results.ts';
import type { Session } from './session.ts';

/** The most changes of an open question that its asker follows. */
const maxChanges = 100;

/**
 * A question as its asker is told of it: the one that it has become, while the same agent changed it. One that another agent
 * has changed is `replaced`.
 */
export async function followedQuestion({ call }: Session, packetId: string, questionId: string): Promise<ToldQuestion> {
  const read = async (question_id: string) => present(await call(routes.getQuestion, { params: { id: packetId, question_id } }));
  let question = await read(questionId);
  // biome-ignore lint/plugin: an open question was changed a few times, and the calls take turns.
  for (let changes = 0; question.replaced_by !== null && changes < maxChanges; changes += 1) {
    const next = await read(question.replaced_by);
    if (next.asked_by.agent_id !== question.asked_by.agent_id) break;
    question = next;
  }
  return { ...question, question: question.question.question };
}

/** The id of the question that a request has asked: the latest one, or an earlier one that has its key. */
export async function askedIn({ call }: Session, { id, hitl }: Packet, key: string | undefined): Promise<string> {
  if (key === undefined || hitl?.key === key) return hitl!.question_id!;
  const { questions } = present(await call(routes.listQuestions, { params: { id }, query: { key, limit: 200 } }));
  return questions.at(-1)!.question_id;
}

/** What became of a question, waiting for it up to some seconds while it is open. */
export async function answeredQuestion(session: Session, packet: Packet, questionId: string, seconds: number): Promise<ToldQuestion> {
  const { call, now } = session;
  const end = now().getTime() + seconds * 1000;
  let { revision } = packet;
  for (;;) {
    const told = await followedQuestion(session, packet.id, questionId);
    // An overdue question may stay open, but nobody can answer it any more.
    const until = Math.min(end, told.expires_at === null ? end : Date.parse(told.expires_at));
    const wait_seconds = Math.ceil((until - now().getTime()) / 1000);
    if (told.state !== 'open' || wait_seconds <= 0) return told;
    const query = { wait_seconds, until_revision: revision + 1 };
    const after = present(await call(routes.getPacket, { params: { id: packet.id }, query }));
    if (after.revision === revision) return followedQuestion(session, packet.id, questionId);
    revision = after.revision;
  }
}
