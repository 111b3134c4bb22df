import { readJson } from '../../kit/json.ts';
import { apiPrefix } from '../model/api.ts';
import type { Packet } from '../model/packet.ts';
import type { PacketService } from '../service/packets.ts';
import type { QuestionService } from '../service/questions.ts';
import { handlersOf } from './handlers.ts';
import { changed, changing } from './packets.ts';

/** The handlers of the routes of questions. */
export const questionHandlers = (questions: QuestionService, packets: PacketService) =>
  handlersOf({
    askQuestion: async ({ params, body }, context) => {
      const answer = await packets.ask(context.caller, params.id, body, changing(context, `POST /packets/${params.id}/questions`));
      // A repeated answer has the question that it asked.
      const id = answer.asked?.question_id ?? (readJson(answer.packet) as Packet).hitl!.question_id!;
      const location = `${apiPrefix}/packets/${params.id}/questions/${id}`;
      return changed(answer, { status: answer.status, headers: { location } });
    },
    listQuestions: ({ params, query }, { caller }) => questions.list(caller, params.id, query),
    getQuestion: ({ params }, { caller }) => questions.get(caller, params.id, params.question_id),
  });
