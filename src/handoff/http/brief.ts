import { HttpResponse, JsonText } from '../../kit/http/response.ts';
import type { BriefService } from '../service/brief.ts';
import { handlersOf } from './handlers.ts';

/** The handlers of the route of briefs. */
export const briefHandlers = (briefOf: BriefService) =>
  handlersOf({
    packetBrief: async ({ params, query }, { caller }) => {
      const { max_chars: maxChars, depth, format } = query;
      const { brief, text } = await briefOf(caller, params.id, { maxChars, depth, format });
      if (format === 'json') return brief;
      return new HttpResponse<never>({ headers: { 'content-type': 'text/markdown; charset=utf-8' }, body: new JsonText(text) });
    },
  });
