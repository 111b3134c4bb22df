import { HttpResponse, JsonText } from '../../kit/http/response.ts';
import type { ApprovalService } from '../service/approvals.ts';
import type { ExecutionService } from '../service/executions.ts';
import { handlersOf } from './handlers.ts';
import { agentOf } from './headers.ts';
import { changing, createAnswer } from './packets.ts';

/** The handlers of the routes of approvals and executions. */
export const approvalHandlers = (approvals: ApprovalService, executions: ExecutionService) =>
  handlersOf({
    askApproval: ({ body }, context) =>
      createAnswer(approvals.ask(context.caller, body, { agentId: agentOf(context), size: context.rawBody?.length })),
    startExecution: async ({ params, body }, context) => {
      const options = changing(context, `POST /packets/${params.id}/execution`);
      const { text, replayed } = await executions.start(context.caller, params.id, body.arguments_digest, options);
      return new HttpResponse<never>({
        status: 201,
        headers: replayed ? { 'idempotency-replayed': 'true' } : {},
        body: new JsonText(text),
      });
    },
    endExecution: ({ params, body }, context) => executions.end(context.caller, params.id, body, changing(context)),
    getExecution: ({ params, query }, { caller }) => executions.get(caller, params.id, query.question_id),
  });
