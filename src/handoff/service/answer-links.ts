import { timingSafeEqual } from 'node:crypto';
import { conflict, notFound, ServiceError } from '../../kit/errors.ts';
import type { RandomSource } from '../../kit/id.ts';
import { isId } from '../../kit/uuid.ts';
import { type AnswerLink, type AnswerLinkRequest, type AnswerLinkStatus, type NewAnswerLink, validSeconds } from '../model/answer-link.ts';
import type { AnsweredBy } from '../model/hitl.ts';
import type { Packet, RespondRequest } from '../model/packet.ts';
import { isSamePerson, nameKey } from '../model/people.ts';
import { linkHash, linkStatus, linkToken, linkTokenBytes, tenantOfLink } from '../rules/answer-link.ts';
import { typedName } from '../rules/answered-by.ts';
import { requireKept } from '../rules/erasure.ts';
import { type KeyFamily, personIn, personOrigin, requireNoSource, subjectOrigin } from '../rules/exclusion.ts';
import type { AnyPacket } from '../rules/packet.ts';
import { isAwaited, latestQuestion } from '../rules/question-state.ts';
import { placeOf } from '../rules/quorum.ts';
import { acts, hasRight, mayMakeFor, requireLasting, requireMakerFor, requireRight } from '../rules/rights.ts';
import type { StoredAnswerLink } from '../store/answer-links.ts';
import type { DeliveryQueue } from '../store/delivery-queues.ts';
import { answerFacts, type FactSources, withFacts } from './action-facts.ts';
import { actorOf, answeredBy, type Caller, type CallerOfOrigin, familyOf, provenanceOf } from './authentication.ts';
import { changeIn } from './change.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { requireOrigin } from './origin.ts';
import type { PacketViews } from './packet-views.ts';
import { linkHasEnded } from './people.ts';
import { type SignInUse, shownSignIn, signInColumn } from './sign-in.ts';

/** What the page of a link shows: the open question, or why there is none. */
export type OpenedLink =
  | {
      readonly status: 'open';
      readonly link: StoredAnswerLink & { tenant: number };
      /** The key that made the link, for which it answers. */
      readonly maker: Caller;
      readonly packet: AskingPacket;
      readonly digest: string;
      /** Whether it is for a person who has signed in. */
      readonly asksSignIn: boolean;
      /** When it was read. */
      readonly readAt: Date;
    }
  | { readonly status: Exclude<AnswerLinkStatus, 'open'> | 'unknown' };

/** A packet with a question. */
export type AskingPacket = Packet & { readonly hitl: NonNullable<Packet['hitl']> };

interface AnswerLinkDependencies extends ServiceDependencies {
  facts: FactSources;
  views: PacketViews;
  random: RandomSource;
  callerOfOrigin: CallerOfOrigin;
  signIn: SignInUse;
  /** The address of the service for people, without a slash at its end; undefined: the origin of the request. */
  publicUrl: string | undefined;
}

/** What a link is made for. */
type Wanted = Pick<StoredAnswerLink, 'responder' | 'channel' | 'sign_in'> & { readonly base: string; readonly seconds: number };

/** A channel, as far as a link for it needs it. */
type ChannelOfLink = Pick<DeliveryQueue, 'tenant' | 'webhook_id' | 'responder' | 'sign_in' | 'key_origin' | 'origin'>;

/** How long a link in a message is valid, in seconds, unless the question ends earlier. */
const maxChannelSeconds = 7 * 86_400;

/** The most open links of a question that callers made, and the most of a packet at all. */
const maxOpenLinks = 100;
const maxLinks = 1000;

/** The id that stands for the tenant, the packet and the key of an unknown link. */
const nothing = '00000000-0000-7000-8000-000000000000';

/** Links to pages on which people answer a question without a key. */
export function createAnswerLinkService({
  store,
  views,
  clock,
  newId,
  random,
  publicUrl,
  facts,
  callerOfOrigin,
  signIn,
}: AnswerLinkDependencies) {
  /**
   * The link of a token, its packet, and the caller for whom it answers; undefined when its key may no longer answer. An
   * unknown token costs the same reads as a known one.
   */
  async function find(token: string) {
    const digest = linkHash(token);
    const found = await store.answerLinks.byHash(tenantOfLink(token) ?? nothing, digest);
    const link = found !== undefined && isSame(found.token_hash, digest) ? found : undefined;
    const maker = await callerOfOrigin(link?.tenant ?? 0, link?.key_origin ?? nothing);
    const view = await views.of({ tenant_number: link?.tenant ?? 0 }, link?.packet_id ?? nothing);
    if (link === undefined || maker === undefined || view === undefined) return undefined;
    // Who made it may have lost the right to since, for somebody else or at all.
    const maySend = link.channel === null ? hasRight(maker, acts.answerByLink) : mayLink(maker, link.responder);
    if (!maySend || !mayMakeFor(maker, link.responder)) return undefined;
    const people = await Promise.all(peopleOf(link).map((name) => personOf(link.tenant, name)));
    const hasLeft = people.some((person) => linkHasEnded(person, link.created_at));
    return { link, maker, packet: view.packet, hasLeft };
  }

  const personOf = (tenant: number, name: string) => store.whole(tenant).people.find(nameKey(name));

  /**
   * Whose answer a link gives, for the exclusion of sources: if a channel sent the link to a person, that person with all keys in the
   * person's name; else the key that made the link.
   */
  async function judgedAs(caller: Caller, { responder, channel }: Pick<StoredAnswerLink, 'responder' | 'channel'>): Promise<KeyFamily> {
    if (channel === null || responder === null) return familyOf(caller);
    const own = (await store.keys.withResponder(caller.tenant_id, clock())).filter((key) => isSamePerson(key.responder, responder));
    const person = personOrigin(responder);
    const stored = await personOf(caller.tenant_number, responder);
    const subject = stored?.subject ? { subject: subjectOrigin({ subject: stored.subject, issuer: stored.issuer! }) } : {};
    // A source may not send itself the link either: of the channel's maker, only that it made the source does not count.
    const keys = [...own, caller];
    return { origin: person, lineage: keys.flatMap(({ origin, lineage }) => [origin, ...lineage]), person, ...subject };
  }

  /** Stores a link to the open question of a packet, which answers for the caller. @throws ServiceError 403 when the caller may not answer */
  async function insert(caller: Caller, packetId: string, { responder, channel, sign_in, base, seconds }: Wanted): Promise<NewAnswerLink> {
    if (channel === null) requireRight(caller, acts.answerByLink);
    requireLasting(caller);
    requireMakerFor(caller, responder);
    const family = await judgedAs(caller, { responder, channel });
    const isOwn = responder !== null && !!caller.responder && isSamePerson(caller.responder, responder);
    const verified = responder !== null && (isOwn || hasRight(caller, acts.actForPerson)) ? 1 : 0;
    const bytes = Buffer.alloc(linkTokenBytes);
    random(bytes);
    const token = linkToken(caller.tenant_id, bytes);
    const now = clock();
    const at = channel === null ? provenanceOf(caller, now) : { now, keyId: null };
    const expires_at = new Date(at.now.getTime() + seconds * 1000).toISOString();
    const id = newId(at.now);
    const maker = { key_id: caller.key_id, key_origin: caller.origin, responder, verified, sign_in, channel };
    const asksSignIn = sign_in === 1 || signIn.isRequired;
    await store.of(caller).commit({
      packets: [packetId],
      notifies: true,
      answerLinksOf: packetId,
      work({ packets, answerLinks, trail }) {
        const packet = packets.get(packetId);
        if (packet === undefined) throw notFound('packet');
        requireKept(packet);
        // Who signs in is judged when answering.
        if (packet.hitl?.exclude_source && !asksSignIn) requireNoSource(packets.sources(packetId), family, 'answered');
        const question = openQuestion(packet, at.now);
        requireFewLinks(answerLinks.ofPacket(packetId), packet, channel, at.now);
        const times = { created_at: at.now.toISOString(), expires_at, answered_at: null, revoked_at: null };
        answerLinks.insert({ seq: 0, id, packet_id: packetId, ...question, token_hash: linkHash(token), ...maker, ...times });
        const details = { answer_link_id: id, responder, expires_at, ...(channel === null ? {} : { channel_id: channel }) };
        const actor = channel === null ? actorOf(caller) : 'system:deliverer';
        trail.append(packet, [{ event_type: 'answer_link_created', type: null, actor, details }], at);
      },
    });
    return { id, url: `${base}/answer/${token}`, responder, ...shownSignIn(sign_in), expires_at };
  }

  /** Whether a person has left: is suspended, or had a key and has none any more. */
  async function hasLeft({ tenant_id, tenant_number }: Caller, responder: string): Promise<boolean> {
    const person = await personOf(tenant_number, responder);
    if (person === undefined || (person.suspended_at === null && person.left_at === null)) return false;
    if (person.suspended_at !== null) return true;
    const keys = await store.keys.withResponder(tenant_id, clock());
    return !keys.some((key) => isSamePerson(key.responder, responder));
  }

  return {
    async create(caller: Caller, packetId: string, request: AnswerLinkRequest, origin: string): Promise<NewAnswerLink> {
      if (!isId(packetId)) throw notFound('packet');
      const responder = request.responder ?? caller.responder ?? null;
      const base = publicUrl ?? requireOrigin(origin);
      const sign_in = signInColumn(request.sign_in ?? false, signIn);
      return insert(caller, packetId, { responder, channel: null, sign_in, base, seconds: validSeconds(request) });
    },

    /**
     * A link for a message to a channel; undefined when the packet is gone or awaits no answer, and `not allowed` when the
     * channel's key may not answer, or is no longer valid, or its responder has left.
     * @throws ServiceError 403 when the channel's key is a source of the question, 409 when the packet has had too many links
     */
    async createFor(channel: ChannelOfLink, packetId: string): Promise<NewAnswerLink | 'not allowed' | undefined> {
      const { tenant, webhook_id, responder, sign_in, key_origin, origin } = channel;
      const caller = key_origin === null ? undefined : await callerOfOrigin(tenant, key_origin);
      if (caller === undefined || !mayLink(caller, responder)) return 'not allowed';
      if (responder !== null && (await hasLeft(caller, responder))) return 'not allowed';
      try {
        const seconds = maxChannelSeconds;
        return await insert(caller, packetId, { responder, channel: webhook_id, sign_in, base: publicUrl ?? origin!, seconds });
      } catch (error) {
        if (error instanceof NoQuestion || (error instanceof ServiceError && error.status === 404)) return undefined;
        throw error;
      }
    },

    async list(caller: Caller, packetId: string): Promise<AnswerLink[]> {
      const tenant = store.of(caller);
      const view = isId(packetId) ? await views.of(caller, packetId) : undefined;
      if (view === undefined) throw notFound('packet');
      const links = await tenant.answerLinks.ofPacket(packetId);
      const names = [...new Set(links.flatMap(peopleOf))];
      const people = new Map(
        await Promise.all(names.map(async (name) => [name, await store.whole(caller.tenant_number).people.find(name)] as const)),
      );
      return links.map((link) => {
        const { id, packet_id, responder, sign_in, created_at, expires_at } = link;
        const found = linkStatus(link, view.packet, clock());
        const isOver = found === 'open' && peopleOf(link).some((name) => linkHasEnded(people.get(name), created_at));
        return { id, packet_id, responder, ...shownSignIn(sign_in), status: isOver ? 'revoked' : found, created_at, expires_at };
      });
    },

    async revoke(caller: Caller, id: string): Promise<void> {
      const found = isId(id) ? await store.of(caller).answerLinks.find(id) : undefined;
      if (found === undefined) throw notFound('answer link');
      const at = provenanceOf(caller, clock());
      await store.of(caller).commit({
        packets: [found.packet_id],
        answerLinks: [id],
        notifies: true,
        work({ packets, answerLinks, trail }) {
          const packet = packets.get(found.packet_id);
          const link = answerLinks.get(id);
          if (packet === undefined || link === undefined || link.revoked_at !== null) throw notFound('answer link');
          answerLinks.save(id, { ...link, revoked_at: at.now.toISOString() });
          const actor = actorOf(caller);
          trail.append(packet, [{ event_type: 'answer_link_revoked', type: null, actor, details: { answer_link_id: id } }], at);
        },
      });
    },

    /** What the page of a token shows. Changes nothing, since mail scanners fetch links. */
    async open(token: string): Promise<OpenedLink> {
      const found = await find(token);
      if (found === undefined) return { status: 'unknown' };
      const { link, maker, packet, hasLeft } = found;
      const readAt = clock();
      const current = linkStatus(link, packet, readAt);
      const status = current === 'open' && hasLeft ? 'revoked' : current;
      if (status !== 'open') return { status };
      const asking = packet as AskingPacket;
      const asksSignIn = link.sign_in === 1 || signIn.isRequired;
      return { status, link, maker, packet: asking, digest: asking.hitl.digest!, asksSignIn, readAt };
    },

    /** Why a person who signed in may not answer by a link that asks for a sign-in, as a sentence; undefined: the person may. */
    async refusalOf({ link, packet, readAt }: OpenedLink & { status: 'open' }, person: Caller): Promise<string | undefined> {
      const { responder, tenant } = link;
      if (person.tenant_number !== tenant) return `You are signed in as ${person.name}; the question is for somebody else.`;
      if (!hasRight(person, acts.answerByLink)) return `You are signed in as ${person.name}, who may not answer questions.`;
      if (responder !== null && isSamePerson(responder, person.name)) return undefined;
      const from = packet.hitl.step?.from;
      if (from === undefined)
        return responder === null ? undefined : `You are signed in as ${person.name}; the question is for somebody else.`;
      const { people } = await facts.policies.of(tenant);
      // Whether it is the asker is said when the person answers.
      const approver = { name: person.name, verified: true, isAsker: false };
      if (placeOf({ byPolicy: true, approvals: [], people }, from, approver, readAt, false) !== 'not asked') return undefined;
      return `You are signed in as ${person.name}; the question is for somebody else.`;
    },

    /**
     * Answers the question of an open link, for a link that asks for a sign-in as the person who signed in. Returns how the link ended
     * in the meantime, if it did.
     * @throws ServiceError 400, 403 or 409 `STALE` as `respond` does
     */
    async answer(
      { link, maker }: OpenedLink & { status: 'open' },
      answer: RespondRequest,
      person?: Caller,
    ): Promise<Exclude<OpenedLink['status'], 'open'> | undefined> {
      const { id, packet_id, responder, channel } = link;
      if (channel === null) requireRight(maker, acts.answerByLink);
      if (responder === null && person === undefined) requireMakerFor(maker, answer.responded_by);
      const by = answererOf(link, answer, person);
      // The person answers, whoever made the link.
      const at =
        person === undefined
          ? { now: clock(), keyId: link.key_id, family: await judgedAs(maker, link) }
          : { ...provenanceOf(person, clock()), family: familyOf(person) };
      const key_id = person === undefined ? link.key_id : null;
      const decider = { verified: by.verified, method: by.method, key_id };
      const standingId = answer.remember !== undefined && mayLetStand(maker, link, person) ? newId(at.now) : undefined;
      return withFacts(facts, { tenant: link.tenant, prepare: answerFacts }, (known) =>
        store.whole(link.tenant).commit({
          packets: [packet_id],
          notifies: true,
          answerLinks: [id],
          ...(standingId === undefined ? {} : { documentsOf: { kind: 'standing' as const, name: standingId } }),
          work(transaction) {
            const stored = transaction.answerLinks.get(id);
            const packet = transaction.packets.get(packet_id);
            if (stored === undefined || packet === undefined) return 'unknown';
            const status = linkStatus(stored, packet, at.now);
            if (status !== 'open') return status;
            const details = { answer_link_id: id, ...(by.verified || responder !== null ? {} : { unverified: true as const }) };
            changeIn(transaction, packet_id, { kind: 'respond', answer, via: 'link', link: details, by, decider, standingId }, at, {
              facts: known,
            });
            transaction.answerLinks.save(id, { ...stored, answered_at: at.now.toISOString() });
            return undefined;
          },
        }),
      );
    },
  };
}

/** For whom a link is, and who made it after signing in, in the form in which names are compared. */
const peopleOf = ({ responder, key_origin }: Pick<StoredAnswerLink, 'responder' | 'key_origin'>): string[] =>
  [responder, personIn(key_origin)].flatMap((name) => (name ? [nameKey(name)] : []));

/** Whether who answers by a link may let an approval stand: it ends with the person's own right, so it must be known whose that is. */
export const mayLetStand = (
  maker: Caller,
  { responder, channel }: Pick<StoredAnswerLink, 'responder' | 'channel'>,
  person: Caller | undefined,
): boolean => person !== undefined || (channel === null && responder !== null && isSamePerson(maker.responder ?? '', responder));

/** Who answers by a link: the person who signed in, or whom the link names, or whose name was typed. */
function answererOf({ id, responder, verified }: StoredAnswerLink, answer: RespondRequest, person: Caller | undefined): AnsweredBy {
  if (person !== undefined) return { ...answeredBy(person, answer.responded_by), link_id: id };
  const name = responder ?? answer.responded_by;
  return verified === 1 ? { name, verified: true, method: 'link', link_id: id } : typedName(name, { link_id: id });
}

export type AnswerLinkService = ReturnType<typeof createAnswerLinkService>;

/** Whether the links of a channel answer: for its key, or, if that may manage, for the person whose questions the channel gets. */
export const mayLink = (caller: Caller, responder: string | null): boolean =>
  hasRight(caller, acts.answerByLink) || (responder !== null && hasRight(caller, acts.actForPerson));

const isSame = (one: string, other: string): boolean => timingSafeEqual(Buffer.from(one), Buffer.from(other));

/** The packet awaits no answer: 409, or 410 when its question is overdue. */
class NoQuestion extends ServiceError {}

/** What a link keeps of the open question of a packet. @throws NoQuestion */
function openQuestion(packet: AnyPacket, now: Date): Pick<StoredAnswerLink, 'question' | 'first_question' | 'asked_of'> {
  const latest = latestQuestion(packet, now);
  if (!isAwaited(packet) || (latest.state !== 'open' && latest.state !== 'timed_out'))
    throw new NoQuestion('CONFLICT', `The packet is ${packet.status} and awaits no answer.`);
  if (latest.state === 'timed_out') throw new NoQuestion('GONE', 'The question is overdue.');
  const { question_id, first_question_id = question_id } = latest.asked;
  return { question: question_id, first_question: first_question_id, asked_of: latest.question.responder ?? null };
}

/** @throws ServiceError 409 when the packet can have no further link. Links for channels don't count toward the open links of a question. */
function requireFewLinks(links: readonly StoredAnswerLink[], packet: AnyPacket, channel: string | null, now: Date): void {
  const open = links.filter((link) => link.channel === null && linkStatus(link, packet, now) === 'open').length;
  if (channel === null && open >= maxOpenLinks) throw conflict(`The question has ${open} open answer links; revoke one first.`);
  if (links.length >= maxLinks) throw conflict(`The packet has had ${links.length} answer links; there can be no more.`);
}
