import { defined } from '../../kit/defined.ts';
import { invalid, notFound } from '../../kit/errors.ts';
import { isId } from '../../kit/uuid.ts';
import {
  type Channel,
  type ChannelDelivery,
  type ChannelEvent,
  type ChannelKind,
  type ChannelPatch,
  type ChannelRequest,
  defaultEvents,
} from '../model/channel.ts';
import type { Delivery, DeliveryStatus } from '../model/webhook.ts';
import { requireMakerFor } from '../rules/rights.ts';
import type { Idempotency } from '../store/idempotency.ts';
import type { Page } from '../store/page-size.ts';
import { type ListedRow, noChannel } from '../store/webhooks.ts';
import { mayLink } from './answer-links.ts';
import type { Caller } from './authentication.ts';
import type { SendingDependencies } from './dependencies.ts';
import { createDestinations } from './destinations.ts';
import { requireOrigin } from './origin.ts';
import { type SignInUse, shownSignIn, signInColumn } from './sign-in.ts';

interface ChannelServiceDependencies extends SendingDependencies {
  /** Why no mail can be sent, as a sentence; undefined when it can. */
  mailProblem: string | undefined;
  /** The address of the service for people, if it is set. */
  publicUrl: string | undefined;
  signIn: SignInUse;
}

/** The most channels of a tenant: every question writes a delivery and makes a link for each of them. */
const maxChannels = 20;

/**
 * A mail address in the common form: no quotation, comment, second address or address of a machine. Everything else of
 * RFC 5322 only helps attackers.
 */
const mailAddress =
  /^[\w!#$%&'*+/=?^`{|}~-]+(\.[\w!#$%&'*+/=?^`{|}~-]+)*@([a-z\d]([a-z\d-]{0,61}[a-z\d])?\.)*[a-z]([a-z\d-]{0,61}[a-z\d])?$/i;
const maxAddress = 254;

/** The operations on channels and their deliveries. */
export function createChannelService({ store, clock, newId, urlProblem, mailProblem, publicUrl, signIn }: ChannelServiceDependencies) {
  const shown = (row: ListedRow) => shownChannel(row, publicUrl);
  const { change, add, remove, test, deliveries, replay } = createDestinations({
    ...{ store, clock, newId },
    destination: 'channel',
    most: maxChannels,
    show: shown,
  });

  async function requireTarget(kind: ChannelKind, target: string, { tenant_number }: Caller): Promise<void> {
    if (kind === 'slack') {
      const problem = await urlProblem(target, tenant_number);
      if (problem !== undefined) throw invalid('target', problem);
    } else {
      if (mailProblem !== undefined) throw invalid('kind', mailProblem);
      if (target.length > maxAddress || !mailAddress.test(target))
        throw invalid(
          'target',
          'target must be one mail address, such as dana@example.com; a domain beyond ASCII is written in its xn-- form.',
        );
    }
  }

  /**
   * What a channel keeps of the request that sets its target or its responder: its links answer for that key, if it may answer.
   * @throws ServiceError 403 when the key may not answer as the responder
   */
  function makerOf(caller: Caller, responder: string | null, origin: string) {
    requireMakerFor(caller, responder);
    return {
      key_id: caller.key_id,
      // A token would have ended when the links answer.
      key_origin: caller.kind !== 'token' && mayLink(caller, responder) ? caller.origin : null,
      origin: publicUrl === undefined ? requireOrigin(origin) : null,
    };
  }

  /** @throws ServiceError 404 */
  async function find(caller: Caller, id: string) {
    const channels = isId(id) ? await store.of(caller).webhooks.channels() : [];
    const found = channels.find((channel) => channel.id === id);
    if (found === undefined) throw notFound('channel');
    return found;
  }

  return {
    remove,

    /** Creates a channel, or repeats the answer stored under the same idempotency key. */
    async create(caller: Caller, request: ChannelRequest, origin: string, idempotency?: Idempotency) {
      const { kind, target, name = null, events = defaultEvents, responder = caller.responder ?? null, sign_in = false } = request;
      await requireTarget(kind, target, caller);
      const wanted = [...new Set(events)];
      const given = {
        kind,
        url: target,
        events: wanted,
        secret: '',
        ...noChannel,
        name,
        responder,
        sign_in: signInColumn(sign_in, signIn),
      };
      return add(caller, { ...given, ...makerOf(caller, responder, origin) }, { kind, name, events: wanted, responder }, idempotency);
    },

    async list(caller: Caller): Promise<Channel[]> {
      return (await store.of(caller).webhooks.channels()).map(shown);
    },

    /** @throws ServiceError 404 */
    async get(caller: Caller, id: string): Promise<Channel> {
      return shown(await find(caller, id));
    },

    async change(caller: Caller, id: string, patch: ChannelPatch, origin: string): Promise<Channel> {
      const { target, name, events, responder, active } = patch;
      const sign_in = patch.sign_in === undefined ? undefined : signInColumn(patch.sign_in, signIn);
      if (target !== undefined) {
        const { kind } = await find(caller, id);
        await requireTarget(kind as ChannelKind, target, caller);
      }
      return change(caller, id, 'updated', (stored) => {
        const fields = Object.keys(patch);
        if (fields.length === 0) return undefined;
        const changed = {
          ...stored,
          ...defined({ url: target, name, events: events && [...new Set(events)], responder, sign_in }),
          // Who gets somebody's questions answers for the links to them.
          ...(target === undefined && responder === undefined
            ? {}
            : makerOf(caller, responder === undefined ? stored.responder : responder, origin)),
          ...(active === undefined ? {} : { active, disabled_reason: null, failing_since: null }),
        };
        return { stored: changed, details: { fields } };
      });
    },

    /** Queues a test message. */
    test: async (caller: Caller, id: string): Promise<ChannelDelivery> => shownDelivery(await test(caller, id, 'test')),

    async deliveries(caller: Caller, id: string, status: DeliveryStatus | undefined, page: Page, signal: AbortSignal) {
      const found = await deliveries(caller, id, status, page, signal);
      return { ...found, deliveries: found.deliveries.map(shownDelivery) };
    },

    /** Queues a dead letter again; its message is made anew. */
    async replay(caller: Caller, id: string, deliveryId: string): Promise<ChannelDelivery> {
      if (!isId(id)) throw notFound('delivery');
      return shownDelivery(await replay(caller, deliveryId, id));
    },
  };
}

export type ChannelService = ReturnType<typeof createChannelService>;

/** A channel as callers see it, with warnings of what it can't do, and if only a request says where its links lead. */
function shownChannel({ kind, url, events, origin, key_origin, ...row }: ListedRow, publicUrl: string | undefined): Channel {
  const { id, name, responder, sign_in, active, disabled_reason, created_at } = row;
  const target = kind === 'slack' ? `${new URL(url).origin}/...${url.slice(-4)}` : url;
  const sentences = [
    ...(publicUrl === undefined && origin !== null && key_origin !== null
      ? [
          `The links in its messages begin with ${origin}, the address of the request that set its target; SERVICE_PUBLIC_URL sets the address at which people reach the service.`,
        ]
      : []),
    ...(key_origin === null
      ? [
          'Its messages have no answer links: who set it up may not answer, or did so with a token. Name a responder, or use a key with the scope respond.',
        ]
      : []),
    ...(key_origin !== null && responder === null && sign_in === 0
      ? [
          'Whoever has a link of its messages answers with a typed name, which is not verified, and a question that excludes its source gets no link if the key that set the channel up is related to the one that asks. Name a responder to verify the answers.',
        ]
      : []),
  ];
  const warnings = sentences.length === 0 ? undefined : sentences;
  return {
    ...{ id, kind: kind as ChannelKind, target, name, events: events as ChannelEvent[], responder },
    ...{ ...shownSignIn(sign_in), links: key_origin !== null, active, disabled_reason, created_at },
    ...defined({ warnings }),
  };
}

const shownDelivery = ({ webhook_id, ...delivery }: Delivery): ChannelDelivery => ({ ...delivery, channel_id: webhook_id });
