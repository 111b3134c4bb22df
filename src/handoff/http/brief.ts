import { HttpResponse, JsonText } from '../../kit/http/response.ts';
import { routes } from '../model/api.ts';
import type { BriefService } from '../service/brief.ts';
import type { HandoffMount } from './mount.ts';

/** Mounts the route of briefs. */
export function mountBrief(mount: HandoffMount, briefOf: BriefService): void {
  mount(routes.packetBrief, async ({ params, query }, { caller }) => {
    const { max_chars: maxChars, depth, format } = query;
    const { brief, text } = await briefOf(caller, params.id, { maxChars, depth, format });
    if (format === 'json') return brief;
    return new HttpResponse<never>({ headers: { 'content-type': 'text/markdown; charset=utf-8' }, body: new JsonText(text) });
  });
}
