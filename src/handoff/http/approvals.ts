import { HttpResponse, JsonText } from '../../kit/http/response.ts';
import type { ApprovalService } from '../service/approvals.ts';
import type { ExecutionService } from '../service/executions.ts';
import { handlersOf } from './handlers.ts';
import { agentOf } from './headers.ts';
import { asTrial, changing, createAnswer, trialOf } from './packets.ts';

/** The handlers of the routes of approvals and executions. */
export const approvalHandlers = (approvals: ApprovalService, executions: ExecutionService) =>
  handlersOf({
    askApproval: {
      handle: async ({ body, query }, context) => {
        const options = { agentId: agentOf(context), size: context.rawBody?.length };
        return query.dry_run === true
          ? new HttpResponse({ status: 200, body: trialOf(await approvals.tryAsk(context.caller, body, options)) as never })
          : createAnswer(approvals.ask(context.caller, body, options));
      },
      refused: asTrial,
    },
    startExecution: async ({ params, body }, context) => {
      const options = changing(context, `POST /packets/${params.id}/execution`);
      const { text, replayed } = await executions.start(context.caller, params.id, body.arguments_digest, options);
      return new HttpResponse<never>({
        status: 201,
        headers: replayed ? { 'idempotency-replayed': 'true' } : {},
        body: new JsonText(text),
      });
    },
    endExecution: ({ params, body, query }, context) =>
      executions.end(context.caller, params.id, { ...body, questionId: query.question_id }, changing(context)),
    getExecution: ({ params, query }, { caller }) => executions.get(caller, params.id, query.question_id),
  });
