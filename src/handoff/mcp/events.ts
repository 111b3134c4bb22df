import { ProtocolError, ProtocolErrorCode, type ServerContext } from '@modelcontextprotocol/server';
import type { TSchema } from 'typebox';
import { bodyValidator, type Validator } from '../../kit/http/validate.ts';
import { beginningOf } from '../../kit/wording.ts';
import {
  type From,
  OccurrenceData,
  type OccurrenceName,
  occurrenceTypes,
  type Subscribed,
  type SubscribeRefusal,
} from '../model/occurrence.ts';
import { published } from './schemas.ts';
import type { Handlers, McpDependencies, McpRequest } from './server.ts';
import type { EventCalls, Session } from './session.ts';

/** The Events extension: SEP-3415, https://modelcontextprotocol.io/extensions/events */
export const eventsExtension = 'io.modelcontextprotocol/events';

/** The error codes of the extension. */
const codes = { notFound: -32011, forbidden: -32012, exhausted: -32013, unsupported: -32014, callback: -32015 } as const;

/** How long a client waits between polls, in milliseconds. */
const nextPollMs = 5000;

/** The most events of one poll. */
const maxEvents = 100;

const names = Object.keys(occurrenceTypes) as OccurrenceName[];

/** The event types as clients list them. */
const listed = names.map((name) => ({
  name,
  description: occurrenceTypes[name].description,
  delivery: ['webhook', 'poll'],
  inputSchema: published(occurrenceTypes[name].input),
  payloadSchema: published(OccurrenceData),
}));

const validators = Object.fromEntries(
  names.map((name) => [name, bodyValidator(occurrenceTypes[name].input as TSchema, { name: 'The arguments', nullIsAbsent: true })]),
) as Record<OccurrenceName, Validator>;

const refused = (message: string, data?: object, code: number = ProtocolErrorCode.InvalidParams) => new ProtocolError(code, message, data);

/** What a request subscribes to. @throws ProtocolError for an unknown type; ServiceError 400 for other arguments than it takes */
function subscribedIn({ name, arguments: args = {} }: Record<string, unknown>): Subscribed {
  if (typeof name !== 'string' || !Object.hasOwn(occurrenceTypes, name))
    throw refused(`There is no such event type; the types are ${names.join(', ')}.`, { kind: 'event' }, codes.notFound);
  const type = name as OccurrenceName;
  return { name: type, arguments: validators[type](args) as Subscribed['arguments'] };
}

/** A whole number of a request, from `least` on; undefined when it is left out. */
function numberIn(params: Record<string, unknown>, name: string, least: number): number | undefined {
  const value = params[name] ?? undefined;
  if (value === undefined) return undefined;
  if (!Number.isSafeInteger(value) || (value as number) < least) throw refused(`${name} must be a whole number from ${least} on.`);
  return value as number;
}

function fromIn(params: Record<string, unknown>): From {
  const cursor = params.cursor ?? null;
  if (cursor !== null && typeof cursor !== 'string') throw refused('cursor must be a text, or null to start from now.');
  return { cursor, maxAgeMs: numberIn(params, 'maxAgeMs', 0) };
}

/** The address and the secret of a request. */
function deliveryIn({ delivery }: Record<string, unknown>): { url: string; secret: unknown } {
  const { mode = 'webhook', url, secret } = Object(delivery) as Record<string, unknown>;
  if (mode !== 'webhook')
    throw refused('delivery.mode must be webhook.', { feature: 'deliveryMode', value: beginningOf(String(mode), 100) }, codes.unsupported);
  if (typeof url !== 'string') throw refused('delivery.url is required.');
  return { url, secret };
}

/** How long a subscription is to last: null for no end, undefined for the usual time. */
const ttlIn = (params: Record<string, unknown>) => (params.ttlMs === null ? null : numberIn(params, 'ttlMs', 1));

function refusalError(refusal: SubscribeRefusal): ProtocolError {
  if (refusal.kind === 'exhausted')
    return refused(
      `The tenant has ${refusal.max} subscriptions, the maximum.`,
      { limit: 'subscriptions', max: refusal.max },
      codes.exhausted,
    );
  const { reason } = refusal;
  return refused('The callback was not verified: it must answer the challenge with {"challenge": ...}.', { reason }, codes.callback);
}

/** The handlers of the methods of the extension. */
export function eventHandlers(sessionOf: McpDependencies['sessionOf'], refusalOf: McpDependencies['refusalOf']): Handlers {
  /** Answers a request by the session's calls; a refusal is an error of the extension. */
  const withEvents =
    (work: (calls: EventCalls, params: Record<string, unknown>) => Promise<object>) =>
    async ({ params = {} }: McpRequest, context: ServerContext): Promise<object> => {
      const { events }: Session = sessionOf(context);
      try {
        return await work(events!, params);
      } catch (error) {
        if (error instanceof ProtocolError) throw error;
        const { code, message } = refusalOf(error);
        if (code === 'FORBIDDEN') throw refused(message, { code }, codes.forbidden);
        const isOurs = code === 'SERVER_ERROR' || code === 'SERVICE_UNAVAILABLE';
        throw refused(message, { code }, isOurs ? ProtocolErrorCode.InternalError : ProtocolErrorCode.InvalidParams);
      }
    };
  return {
    'events/list': () => ({ events: listed }),
    'events/subscribe': withEvents(async ({ subscribe }, params) => {
      const { url, secret } = deliveryIn(params);
      if (typeof secret !== 'string') throw refused('delivery.secret is required.');
      const request = { url, secret, ttlMs: ttlIn(params), ...fromIn(params) };
      const answer = await subscribe(subscribedIn(params), request);
      if ('refusal' in answer) throw refusalError(answer.refusal);
      return answer;
    }),
    'events/unsubscribe': withEvents(async ({ unsubscribe }, params) => {
      if (await unsubscribe(subscribedIn(params), deliveryIn(params).url)) return {};
      throw refused('There is no such subscription.', { kind: 'subscription' }, codes.notFound);
    }),
    'events/poll': withEvents(async ({ poll }, params) => {
      const most = Math.min(numberIn(params, 'maxEvents', 1) ?? maxEvents, maxEvents);
      return { ...(await poll(subscribedIn(params), { ...fromIn(params), maxEvents: most })), nextPollMs };
    }),
  };
}
