import type { FastifyReply, FastifyRequest } from 'fastify';

import { type Limit, LimitReached } from '../errors.ts';
import type { WindowState } from '../window.ts';

/** What the limits say of a request. */
export interface LimitState {
  /** Named as the framework keeps them: other spellings it would have to lower at each request. */
  readonly headers: Record<string, string>;
  /** Why the request is refused, where it is. */
  readonly refusal: LimitReached | undefined;
  /** Takes the request back: another limit refused it, and what is refused counts nowhere. */
  giveBack(): void;
}

/** The headers that tell of a window: its limit, what is left of it, and the seconds until its oldest request leaves. */
export function limitHeaders(limit: number, { remaining, resetMs }: WindowState): Record<string, string> {
  return {
    'x-ratelimit-limit': String(limit),
    'x-ratelimit-remaining': String(remaining),
    'x-ratelimit-reset': String(Math.ceil(resetMs / 1000)),
  };
}

/** A refusal by a window: 429, with the time after which a place is free. */
export function tooMany(detail: string, limit: Limit, waitMs: number): LimitReached {
  const seconds = Math.ceil(waitMs / 1000);
  return new LimitReached(`${detail} Try again in ${seconds} seconds.`, limit, seconds);
}

/** Takes a request back from the limits that counted it before another one refused it. */
export function takeBack({ notes }: FastifyRequest, reply: FastifyReply): void {
  const state = notes.counted as LimitState | undefined;
  if (state === undefined) return;
  state.giveBack();
  const remaining = state.headers['x-ratelimit-remaining'];
  if (remaining !== undefined) reply.header('x-ratelimit-remaining', String(Number(remaining) + 1));
}
