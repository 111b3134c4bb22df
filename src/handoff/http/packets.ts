import { type Awaitable, andThen } from '../../kit/awaitable.ts';
import { type Fault, invalid, notFound, ServiceError, short } from '../../kit/errors.ts';
import { entityTagOf, isKnown } from '../../kit/etag.ts';
import type { HandlerContext } from '../../kit/http/exchange.ts';
import { HttpResponse, JsonText } from '../../kit/http/response.ts';
import { bodyValidator } from '../../kit/http/validate.ts';
import { readJson } from '../../kit/json.ts';
import { traceHeadersOf } from '../../kit/trace-context.ts';
import type { Turns } from '../../kit/turns.ts';
import { isId } from '../../kit/uuid.ts';
import type { Tier } from '../model/common.ts';
import { CreateRequest, type Packet } from '../model/packet.ts';
import type { Trial, WaitQuery } from '../model/packet-routes.ts';
import type { AnsweredVia } from '../rules/answer.ts';
import { leaseEndIn } from '../rules/text.ts';
import type { TierLimits } from '../rules/tiers.ts';
import { traceIn } from '../rules/trace.ts';
import type { Caller } from '../service/authentication.ts';
import type { Changed, ChangeOptions } from '../service/change.ts';
import type { BatchItem, CreateAnswer, CreateOptions } from '../service/create.ts';
import { statusesOf } from '../service/filters.ts';
import type { ListService, PageText } from '../service/lists.ts';
import { claimOf, type PacketService } from '../service/packets.ts';
import type { Waiter, WaitingService } from '../service/waiting.ts';
import type { PacketStamp, PacketText } from '../store/packets.ts';
import type { Store } from '../store/store.ts';
import { type Handlers, handlersOf } from './handlers.ts';
import { agentOf, idempotencyOf, leaseToken } from './headers.ts';
import { linkTo, recordAnswer } from './packet-traces.ts';

interface PacketHandlersDependencies {
  store: Store;
  packets: PacketService;
  lists: ListService;
  batchMax: number;
  waiting: WaitingService;
  turns: Turns;
  tiers: Record<Tier, TierLimits>;
}

/** How many bytes of a batch are validated in one turn of the event loop. */
const bytesPerTurn = 1024 * 1024;

/** The handlers of the routes of packets, of work on them and of batches. */
export function packetHandlers({ store, packets, lists, batchMax, waiting, turns, tiers }: PacketHandlersDependencies) {
  const validateItem = bodyValidator(CreateRequest, { nullIsAbsent: true, name: 'The packet' });

  /** The items of a batch. A large batch takes several turns. */
  async function itemsOf({ tenant_number, tenant_tier }: Caller, values: readonly unknown[]): Promise<BatchItem[]> {
    const limit = tiers[tenant_tier].packetBytes;
    const items: BatchItem[] = [];
    let inTurn = 0;
    for (const value of values) {
      if (inTurn > bytesPerTurn) {
        await turns.next(tenant_number);
        inTurn = 0;
      }
      const size = Buffer.byteLength(JSON.stringify(value));
      inTurn += size;
      items.push(itemOf(value, size, limit));
    }
    return items;
  }

  function itemOf(value: unknown, size: number, limit: number): BatchItem {
    try {
      if (size > limit)
        throw new ServiceError('PAYLOAD_TOO_LARGE', `The packet is larger than the ${limit} bytes that this tenant's tier allows.`);
      // The answer has one error per item, so the validator may stop at the first.
      return { request: validateItem(value, Number.POSITIVE_INFINITY) as CreateRequest };
    } catch (error) {
      if (error instanceof ServiceError) return { error };
      throw error;
    }
  }

  function requireBatch(field: string, items: readonly unknown[]): void {
    if (items.length > batchMax) throw invalid(field, `${field} can have at most ${batchMax} items.`);
  }

  /** Waits until the packet is as wanted; answers with it, or with the packet as it is when the wait ends. */
  async function whenWanted(id: string, query: WaitQuery, context: HandlerContext<Caller>): Promise<HttpResponse<never>> {
    const { caller, headers } = context;
    const isWanted = await waiting.until(waiterOf(context, query.wait_seconds), id, conditionOf(query));
    // An event may wake a thousand requests.
    if (isWanted) await turns.next(caller.tenant_number);
    return packetAnswer(await store.of(caller).packets.find(id), headers['if-none-match']);
  }

  /** Answers a question; histories name the way by which the answer came. */
  const respond = (way: AnsweredVia): Handlers['respondPacket'] => ({
    async handle({ params, body }, context) {
      const options = changing(context, `POST /packets/${params.id}/respond`);
      const via = (context.via as AnsweredVia | undefined) ?? way;
      const change = await packets.respond(context.caller, params.id, body, { ...options, via });
      if (!change.replayed) recordAnswer(change.packet);
      return answerOf(change);
    },
    bodyFaults: answerFaults,
  });

  return handlersOf({
    createPacket: {
      handle: async ({ body, query }, context) => {
        const options = createOptions(context, 'POST /packets');
        return query.dry_run === true
          ? new HttpResponse({ status: 200, body: trialOf(await packets.tryCreate(context.caller, body, options)) as never })
          : createAnswer(packets.create(context.caller, body, options));
      },
      refused: asTrial,
    },
    chainPacket: ({ params, body }, context) =>
      createAnswer(packets.chain(context.caller, params.id, body, createOptions(context, `POST /packets/${params.id}/chain`))),
    batchCreate: async ({ body }, context) => {
      requireBatch('packets', body.packets);
      const items = await itemsOf(context.caller, body.packets);
      return createAnswer(packets.createBatch(context.caller, items, createOptions(context, 'POST /packets/batch')));
    },

    listPackets: ({ query }, { caller, signal }) => andThen(lists.packets(caller, query, signal), jsonOf),
    listAwaiting: ({ query }, { caller, signal }) => andThen(lists.awaiting(caller, query, signal), jsonOf),
    searchPackets: ({ query }, { caller, signal }) => andThen(lists.search(caller, query, signal), jsonOf),

    getPacket: ({ params, query }, context) => {
      if (!isId(params.id)) throw notFound('packet');
      if (query.wait_seconds !== undefined) return whenWanted(params.id, query, context);
      const { caller, headers } = context;
      // The most frequent read: if the store answers synchronously, so does the handler.
      const finding: Awaitable<PacketText | undefined> = store.of(caller).packets.find(params.id);
      return andThen(finding, (found) => packetAnswer(found, headers['if-none-match']));
    },

    claimPacket: async ({ params, body }, context) =>
      claimed(await packets.claim(context.caller, params.id, claimOf(body), changing(context, `POST /packets/${params.id}/claim`))),
    claimNext: async ({ body }, context) => {
      const idempotency = idempotencyOf(context, 'POST /packets/claim-next');
      const found = await waiting.claimNext(waiterOf(context, body.wait_seconds), body, idempotency);
      return found === null ? new HttpResponse<never>({ status: 204 }) : claimed(found);
    },
    respondPacket: respond('api'),
    respondInConsole: respond('console'),
    patchPacket: async ({ params, body }, context) =>
      changed(await packets.patch(context.caller, params.id, body, changing(context, `PATCH /packets/${params.id}`))),
    deletePacket: async ({ params, query }, context) => {
      if (query.hard === true) await packets.remove(context.caller, params.id, changing(context));
      else await packets.expire(context.caller, params.id, changing(context));
    },
    withdrawQuestion: async ({ params }, context) => changed(await packets.withdraw(context.caller, params.id, changing(context))),
    releasePacket: async ({ params }, context) => changed(await packets.release(context.caller, params.id, changing(context))),
    renewLease: async ({ params, body }, context) => {
      const { packet } = await packets.renew(context.caller, params.id, body?.lease_seconds, changing(context));
      return { lease: (readJson(packet) as Packet).lease! };
    },
    endLease: async ({ params }, context) => {
      await packets.endLease(context.caller, params.id, changing(context));
    },

    batchClaim: async ({ body }, { caller }) => {
      requireBatch('packet_ids', body.packet_ids);
      const { changed: claimed, errors } = await packets.claimEach(caller, body.packet_ids, claimOf(body));
      return outcome('claimed', claimed, errors);
    },
    batchComplete: async ({ body }, context) => {
      requireBatch('packet_ids', body.packet_ids);
      const { packet_ids, agent_id = agentOf(context), lease_tokens } = body;
      const { changed: completed, errors } = await packets.completeEach(context.caller, packet_ids, agent_id, lease_tokens);
      return outcome('completed', completed, errors);
    },
  });
}

/** An answer needs a response or, for a question with a schema, data. */
function answerFaults(body: unknown): Fault[] {
  const { response, data, digest, decision } = (body ?? {}) as Partial<Record<'response' | 'data' | 'digest' | 'decision', unknown>>;
  const isLeftOut = (value: unknown) => value === undefined || value === null;
  // An answer to something else than the current question is 409 `STALE`, whatever else is wrong with it.
  return [response, data, digest, decision].every(isLeftOut) ? [{ field: 'response', detail: 'response is required.' }] : [];
}

/** Whether a packet is as a request waits for it. @throws ServiceError 400 when the request names no condition, or an unknown status */
function conditionOf({ until, until_revision: revision = Number.POSITIVE_INFINITY }: WaitQuery): (found: PacketStamp) => boolean {
  if (until === undefined && revision === Number.POSITIVE_INFINITY)
    throw invalid('wait_seconds', 'wait_seconds needs until, such as until=claimed,completed, or until_revision.');
  const wanted = statusesOf(until, 'until') ?? [];
  return (found) => found.revision >= revision || wanted.includes(found.status);
}

/** The answers of pages shared by several requests, so that a long page is encoded once. */
const answers = new WeakMap<PageText, JsonText>();

/** A page as an answer. */
function jsonOf(page: PageText): JsonText {
  const answered = answers.get(page) ?? new JsonText(page.text, page.octets);
  answers.set(page, answered);
  return answered;
}

/** The entity tag of a packet as it is shown: with the end of its lease, which a renewal changes without a new revision. */
function tagOf({ packet, revision }: PacketText): string {
  const end = leaseEndIn(packet);
  return entityTagOf(revision, end === undefined ? undefined : Date.parse(end).toString(36));
}

/** The answer to a read of a packet: 304 when `If-None-Match` names its revision. */
function packetAnswer(found: PacketText | undefined, ifNoneMatch: string | undefined): HttpResponse<never> {
  if (found === undefined) throw notFound('packet');
  const etag = tagOf(found);
  if (isKnown(ifNoneMatch, etag)) return new HttpResponse<never>({ status: 304, headers: { etag } });
  return new HttpResponse<never>({ headers: { etag }, body: new JsonText(found.packet) });
}

/** A refusal as the answer to a request that only tries; undefined: the request does not, or has no body that is JSON. */
export function asTrial(refusal: ServiceError, { isRead, body, query }: { isRead: boolean; body: unknown; query: unknown }) {
  if (!isRead || refusal.status !== 400 || body === undefined || (query as { dry_run?: unknown }).dry_run !== true) return undefined;
  return new HttpResponse<never>({ status: 200, body: trialOf(refusal) as never });
}

/** What a request found out that only tries to create a packet. */
export function trialOf(refusal: ServiceError | undefined): Trial {
  if (refusal === undefined) return { ok: true, errors: [] };
  const { code, field, message, faults } = refusal;
  const all = faults.length > 0 ? faults : [{ field, detail: message }];
  const errors = all.map((fault) => ({
    code: code as Trial['errors'][number]['code'],
    field: fault.field ? short(fault.field) : null,
    message: short(fault.detail),
    detail: short(fault.detail),
  }));
  return { ok: false, errors };
}

/** The answer to a create request. */
export async function createAnswer(making: Promise<CreateAnswer>): Promise<HttpResponse<never>> {
  const { text, status, etag, replayed } = await making;
  return new HttpResponse<never>({
    status,
    headers: { ...(etag === null ? {} : { etag }), ...(replayed ? { 'idempotency-replayed': 'true' } : {}) },
    body: new JsonText(text),
  });
}

/** The options of a change. Those of an `operation` have its idempotency key. */
export const changing = (context: HandlerContext<Caller>, operation?: string): ChangeOptions => ({
  agentId: agentOf(context),
  // Over MCP the holder of a lease may leave its token out.
  ...(context.via === 'mcp' ? { holder: agentOf(context) } : {}),
  ifMatch: context.headers['if-match'],
  token: leaseToken(context.headers),
  ...(operation === undefined ? {} : { idempotency: idempotencyOf(context, operation) }),
});

/** The answer to a claim: with the trace of the packet, which the work on it continues. */
const claimed = (change: Changed) => changed(change, { headers: { ...traceIn(change.packet) } });

/** The answer to a change of a packet, which links to the trace of the packet. */
export function changed(change: Changed, answer: { status?: number; headers?: Record<string, string> } = {}) {
  linkTo(change.packet);
  return answerOf(change, answer);
}

function answerOf({ packet, revision, replayed }: Changed, answer: { status?: number; headers?: Record<string, string> } = {}) {
  const headers = { etag: tagOf({ packet, revision }), ...(replayed ? { 'idempotency-replayed': 'true' } : {}), ...answer.headers };
  return new HttpResponse<never>({ ...answer, headers, body: new JsonText(packet) });
}

function outcome(name: 'claimed' | 'completed', packets: readonly string[], errors: readonly unknown[]): JsonText {
  for (const packet of packets) linkTo(packet);
  return new JsonText(`{"${name}":[${packets.join(',')}],"errors":${JSON.stringify(errors)}}`);
}

/** The request as one that waits. */
const waiterOf = ({ caller, endSignal: signal }: HandlerContext<Caller>, seconds = 0): Waiter => ({ caller, signal, seconds });

function createOptions(context: HandlerContext<Caller>, operation: string): CreateOptions {
  const { headers, rawBody } = context;
  return {
    agentId: agentOf(context),
    idempotency: idempotencyOf(context, operation),
    size: rawBody?.length,
    trace: traceHeadersOf(headers),
  };
}
