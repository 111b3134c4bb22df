import { HttpResponse } from '../../kit/http/response.ts';
import type { LiveEvent } from '../live/event.ts';
import { routes } from '../model/api.ts';
import { priorities } from '../model/common.ts';
import type { ClaimNextRequest } from '../model/packet.ts';
import type { Changed } from '../service/change.ts';
import type { PacketService } from '../service/packets.ts';
import type { ClaimFilter } from '../store/claim-queue.ts';
import type { HandoffMount } from './mount.ts';
import { changed, claimOf, idempotencyOf } from './packets.ts';
import type { Wait } from './waiting.ts';

/** Mounts the route that claims the next packet. */
export function mountClaimNext(mount: HandoffMount, packets: PacketService, wait: Wait): void {
  mount(routes.claimNext, async ({ body }, { caller, headers, rawBody, endSignal: signal }) => {
    const filter = filterOf(body);
    const idempotency = idempotencyOf(headers, 'POST /packets/claim-next', rawBody);
    const claim = () => packets.claimNext(caller, filter, claimOf(body), { idempotency, isOpen: () => !signal.aborted });
    const { wait_seconds: seconds = 0 } = body;
    if (seconds === 0) return found(await retried(claim));
    const agent = filter.target_agent;
    const wants = ({ channels }: LiveEvent) =>
      channels.includes('status:created') && (agent === null || channels.includes(`agent:${agent}`));
    const { packet } = await wait({ caller, headers, signal, seconds, kind: JSON.stringify(filter), wants, claim });
    return found(packet);
  });
}

/** Retries while other callers claim the candidates first. Each retry means that another caller got a packet, so the loop ends. */
async function retried(claim: () => Promise<Changed | null | undefined>): Promise<Changed | null> {
  // biome-ignore lint/plugin: a pass changes one packet, or there is none.
  for (;;) {
    const claimed = await claim();
    if (claimed !== undefined) return claimed;
  }
}

function found(packet: Changed | null): HttpResponse<never> {
  return packet === null ? new HttpResponse<never>({ status: 204 }) : changed(packet);
}

/** The filter of a request for the next packet. */
function filterOf({ agent_id, target_agent = agent_id, tags = [], priorities: wanted = [...priorities] }: ClaimNextRequest): ClaimFilter {
  return {
    target_agent: target_agent === '*' ? null : target_agent,
    tags: [...new Set(tags)].sort(),
    priorities: priorities.filter((priority) => wanted.includes(priority)),
  };
}
