import type { Clock } from '../../kit/clock.ts';
import { ServiceError } from '../../kit/errors.ts';
import type { ChannelEvent } from '../model/channel.ts';
import { groupPrefix } from '../model/people.ts';
import { isStillSo, type Notice, noticeOf, overdueNotice, testNotice } from '../rules/notice.ts';
import type { ClaimedDelivery, DeliveryQueue } from '../store/delivery-queues.ts';
import type { AnswerLinkService } from './answer-links.ts';
import type { PacketViews } from './packet-views.ts';

interface NoticeDependencies {
  views: PacketViews;
  clock: Clock;
  answerLinks: Pick<AnswerLinkService, 'createFor'>;
  /** The address of the service for people, without a slash at its end, if it is set. */
  publicUrl: string | undefined;
}

/** Makes the messages to channels at the moment at which they are sent, since a kept message would hold an answer link. */
export function createNoticeService({ views, clock, answerLinks, publicUrl }: NoticeDependencies) {
  /** A new link to a packet's question, or why there is none. */
  async function linkFor(queue: DeliveryQueue, packetId: string): Promise<{ url: string } | { none: string } | undefined> {
    if (queue.responder?.startsWith(groupPrefix))
      return { none: 'Answer in the console or with your own key: a link for a group does not say who you are.' };
    const base = publicUrl ?? queue.origin;
    const inConsole = base ? `. Answer in the console: ${base}/console/packets/${packetId}` : '. Answer in the console.';
    try {
      const link = await answerLinks.createFor(queue, packetId);
      return link === 'not allowed' ? { none: `This channel has no answer links${inConsole}` } : link;
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      if (error.code === 'FORBIDDEN')
        return {
          none: `The question excludes links of this channel, since the key that asks is related to whom they would answer for${inConsole}`,
        };
      if (error.code === 'CONFLICT') return { none: `The packet has had too many answer links${inConsole}` };
      throw error;
    }
  }

  return {
    /** What a delivery to a channel says now; undefined when there is nothing to say any more. */
    async of(queue: DeliveryQueue, { packet_id, event_type, created_at }: ClaimedDelivery): Promise<Notice | undefined> {
      if (packet_id === null) return testNotice;
      const event = event_type as ChannelEvent;
      const packet = (await views.of({ tenant_number: queue.tenant }, packet_id))?.packet;
      if (packet === undefined || !isStillSo(event, packet, created_at, clock())) return undefined;
      if (event === 'overdue') return overdueNotice(packet);
      if (event === 'answered') return noticeOf(event, packet, { none: '' }, clock());
      const link = await linkFor(queue, packet_id);
      return link && noticeOf(event, packet, link, clock());
    },
  };
}

export type NoticeService = ReturnType<typeof createNoticeService>;
