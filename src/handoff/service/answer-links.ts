import { timingSafeEqual } from 'node:crypto';

import type { Clock } from '../../kit/clock.ts';
import { conflict, invalid, notFound, ServiceError } from '../../kit/errors.ts';
import { isId, type NewId, type RandomSource } from '../../kit/id.ts';
import { type AnswerLink, type AnswerLinkRequest, type AnswerLinkStatus, type NewAnswerLink, validSeconds } from '../model/answer-link.ts';
import type { Packet, RespondRequest } from '../model/packet.ts';
import { isLinkToken, linkHash, linkStatus, linkTokenBytes, questionOf } from '../rules/answer-link.ts';
import { digestOf } from '../rules/digest.ts';
import type { PacketEvent } from '../rules/packet.ts';
import { askedStatus } from '../rules/packet-life.ts';
import { isOver } from '../rules/question.ts';
import { requireResponder } from '../rules/rights.ts';
import type { StoredAnswerLink } from '../store/answer-links.ts';
import type { Store } from '../store/store.ts';
import type { Caller } from './authentication.ts';
import { changeIn } from './change.ts';
import { commitAsPerson, originOf } from './respond.ts';

/** What the page of a link shows: the open question, or why there is none. */
export type OpenedLink =
  | {
      readonly status: 'open';
      readonly link: StoredAnswerLink & { tenant: number };
      readonly packet: AskingPacket;
      readonly digest: string;
    }
  | { readonly status: Exclude<AnswerLinkStatus, 'open'> | 'unknown' };

/** A packet with a question. */
export type AskingPacket = Packet & { readonly hitl: NonNullable<Packet['hitl']> };

interface AnswerLinkParts {
  store: Store;
  clock: Clock;
  newId: NewId;
  random: RandomSource;
  /** The address of the service for people, without a slash at its end; undefined: the origin of the request. */
  publicUrl: string | undefined;
}

/** The most open links of a question, and the most of a packet at all. */
const maxOpenLinks = 100;
const maxLinks = 1000;

/** The id that stands for the packet of an unknown link. */
const noPacket = '00000000-0000-7000-8000-000000000000';

/** Links to pages on which people answer a question without a key. */
export function createAnswerLinkService({ store, clock, newId, random, publicUrl }: AnswerLinkParts) {
  /** The link of a token and its packet. An unknown token costs the same reads as a known one. */
  async function find(token: string) {
    const digest = linkHash(token);
    const found = await store.answerLinks.byHash(digest, clock());
    const link = found !== undefined && isLinkToken(token) && isSame(found.token_hash, digest) ? found : undefined;
    const text = await store.of(link?.tenant ?? 0).packets.find(link?.packet_id ?? noPacket);
    return link === undefined || text === undefined ? undefined : { link, packet: JSON.parse(text.packet) as Packet };
  }

  return {
    async create(caller: Caller, packetId: string, request: AnswerLinkRequest, origin: string): Promise<NewAnswerLink> {
      if (!isId(packetId)) throw notFound('packet');
      const responder = request.responder ?? caller.responder ?? null;
      if (responder !== null) requireResponder(caller, responder);
      const base = publicUrl ?? requireOrigin(origin);
      const bytes = Buffer.alloc(linkTokenBytes);
      random(bytes);
      const token = bytes.toString('hex');
      const at = { now: clock(), keyId: caller.key_id };
      const expires_at = new Date(at.now.getTime() + validSeconds(request) * 1000).toISOString();
      const id = newId(at.now);
      await commitAsPerson(store, caller.tenant_number, {
        id: packetId,
        origin: originOf(caller),
        answerLinksOf: packetId,
        work({ packets, answerLinks, trail }) {
          const packet = packets.get(packetId);
          if (packet === undefined) throw notFound('packet');
          const { hitl, status } = packet;
          const question = hitl && questionOf(hitl);
          if (status !== askedStatus || hitl === null || question === null) throw conflict(`The packet is ${status} and awaits no answer.`);
          if (isOver(hitl, at.now)) throw new ServiceError('GONE', 'The time to answer is over.');
          const links = answerLinks.ofPacket(packetId);
          const open = links.filter((link) => linkStatus(link, packet, at.now) === 'open').length;
          if (open >= maxOpenLinks) throw conflict(`The question has ${open} open answer links; revoke one first.`);
          if (links.length >= maxLinks) throw conflict(`The packet has had ${links.length} answer links; there can be no more.`);
          answerLinks.insert({
            seq: 0,
            id,
            packet_id: packetId,
            question,
            token_hash: linkHash(token),
            responder,
            key_id: caller.key_id,
            key_origin: originOf(caller),
            created_at: at.now.toISOString(),
            expires_at,
            answered_at: null,
            revoked_at: null,
          });
          trail.append(packet, [linkEvent(caller, 'answer_link_created', { answer_link_id: id, responder, expires_at })], at);
        },
      });
      return { id, url: `${base}/answer/${token}`, responder, expires_at };
    },

    async list(caller: Caller, packetId: string): Promise<AnswerLink[]> {
      const tenant = store.of(caller.tenant_number);
      const text = isId(packetId) ? await tenant.packets.find(packetId) : undefined;
      if (text === undefined) throw notFound('packet');
      const packet = JSON.parse(text.packet) as Packet;
      const links = await tenant.answerLinks.ofPacket(packetId);
      return links.map((link) => {
        const { id, packet_id, responder, created_at, expires_at } = link;
        return { id, packet_id, responder, status: linkStatus(link, packet, clock()), created_at, expires_at };
      });
    },

    async revoke(caller: Caller, id: string): Promise<void> {
      const found = isId(id) ? await store.of(caller.tenant_number).answerLinks.find(id) : undefined;
      if (found === undefined) throw notFound('answer link');
      const at = { now: clock(), keyId: caller.key_id };
      await store.of(caller.tenant_number).commit({
        packets: [found.packet_id],
        answerLinks: [id],
        announces: true,
        work({ packets, answerLinks, trail }) {
          const packet = packets.get(found.packet_id);
          const link = answerLinks.get(id);
          if (packet === undefined || link === undefined || link.revoked_at !== null) throw notFound('answer link');
          answerLinks.save(id, { ...link, revoked_at: at.now.toISOString() });
          trail.append(packet, [linkEvent(caller, 'answer_link_revoked', { answer_link_id: id })], at);
        },
      });
    },

    /** What the page of a token shows. Changes nothing, since mail scanners fetch links. */
    async open(token: string): Promise<OpenedLink> {
      const found = await find(token);
      if (found === undefined) return { status: 'unknown' };
      const { link, packet } = found;
      const status = linkStatus(link, packet, clock());
      if (status !== 'open') return { status };
      const asking = packet as AskingPacket;
      return { status, link, packet: asking, digest: digestOf(asking) };
    },

    /**
     * Answers the question of an open link. Returns how the link ended in the meantime, if it did.
     * @throws ServiceError 400, 403 or 409 `STALE` as `respond` does
     */
    async answer(
      { link }: OpenedLink & { status: 'open' },
      answer: RespondRequest,
    ): Promise<Exclude<OpenedLink['status'], 'open'> | undefined> {
      const at = { now: clock(), keyId: link.key_id };
      const { id, packet_id, responder, key_origin } = link;
      return commitAsPerson(store, link.tenant, {
        id: packet_id,
        origin: key_origin,
        answerLinks: [id],
        work(transaction) {
          const stored = transaction.answerLinks.get(id);
          const packet = transaction.packets.get(packet_id);
          if (stored === undefined || packet === undefined) return 'unknown';
          const status = linkStatus(stored, packet, at.now);
          if (status !== 'open') return status;
          const details = { answer_link_id: id, ...(responder === null ? { unverified: true as const } : {}) };
          changeIn(transaction, packet_id, { kind: 'respond', answer, via: 'link', link: details }, at);
          transaction.answerLinks.save(id, { ...stored, answered_at: at.now.toISOString() });
          return undefined;
        },
      });
    },
  };
}

export type AnswerLinkService = ReturnType<typeof createAnswerLinkService>;

const isSame = (one: string, other: string): boolean => timingSafeEqual(Buffer.from(one), Buffer.from(other));

const linkEvent = (caller: Caller, event_type: PacketEvent['event_type'], details: Record<string, unknown>): PacketEvent => ({
  event_type,
  type: null,
  actor: `key:${caller.key_id}`,
  details,
});

/** The origin of a request, for an address. @throws ServiceError 400 when the header Host is none that an address can contain */
function requireOrigin(origin: string): string {
  if (/^https?:\/\/[\w.-]+(:\d+)?$/.test(origin) || /^https?:\/\/\[[\da-f:]+\](:\d+)?$/i.test(origin)) return origin;
  throw invalid('Host', 'Host must be the name of this service, since the link begins with it; SERVICE_PUBLIC_URL sets another.');
}
