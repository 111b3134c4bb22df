import { ServiceError } from '../../kit/errors.ts';
import { SlidingWindow } from '../../kit/window.ts';
import type { Tier } from '../model/common.ts';
import type { TierLimits } from '../rules/tiers.ts';
import type { Caller } from '../service/access.ts';

const minuteMs = 60_000;
const hourMs = 3_600_000;

/** Wrong keys a minute from one address, before guessing gets 429. */
const wrongKeysAMinute = 30;

/** How many windows of a kind are kept before the empty and the oldest are dropped. */
const maxWindows = 20_000;

/** What the answer says of the limits. */
export interface LimitState {
  readonly headers: Record<string, string>;
  /** Seconds to wait, when the request is refused. */
  readonly retryAfter: number | undefined;
}

/** Windows by name, bounded: those that count nothing go first, then the oldest. */
class Windows {
  readonly #lengthMs: number;
  readonly #windows = new Map<string, SlidingWindow>();

  constructor(lengthMs: number) {
    this.#lengthMs = lengthMs;
  }

  of(name: string, now: number): SlidingWindow {
    let window = this.#windows.get(name);
    if (window === undefined) {
      if (this.#windows.size >= maxWindows) this.#drop(now);
      window = new SlidingWindow(this.#lengthMs);
      this.#windows.set(name, window);
    }
    return window;
  }

  #drop(now: number): void {
    for (const [name, window] of this.#windows) if (window.isEmpty(now)) this.#windows.delete(name);
    for (const name of this.#windows.keys()) {
      if (this.#windows.size < maxWindows) return;
      this.#windows.delete(name);
    }
  }
}

/** Counts requests: by key in any minute, by tenant in any hour, and wrong keys by address. */
export class Limits {
  readonly #perMinute: number;
  readonly #tiers: Record<Tier, TierLimits>;
  readonly #minutes = new Windows(minuteMs);
  readonly #hours = new Windows(hourMs);
  readonly #wrongKeys = new Windows(minuteMs);

  constructor(perMinute: number, tiers: Record<Tier, TierLimits>) {
    this.#perMinute = perMinute;
    this.#tiers = tiers;
  }

  /** Counts the request, unless a limit refuses it; a refused request counts nowhere. */
  take(caller: Caller, now: number): LimitState {
    const perHour = this.#tiers[caller.tenant_tier].hourlyQuota;
    const minute = this.#perMinute > 0 ? this.#minutes.of(caller.key_id, now) : undefined;
    const hour = perHour > 0 ? this.#hours.of(caller.tenant_id, now) : undefined;
    const inMinute = minute?.peek(now, this.#perMinute);
    const inHour = hour?.peek(now, perHour);
    const refused = inMinute?.allowed === false || inHour?.allowed === false;
    if (!refused) {
      minute?.add(now, this.#perMinute);
      hour?.add(now, perHour);
    }
    const after = refused ? inMinute : minute?.peek(now, this.#perMinute);
    const waitMs = Math.max(inMinute?.retryAfterMs ?? 0, inHour?.retryAfterMs ?? 0);
    return {
      headers: {
        ...(after === undefined
          ? {}
          : {
              'X-RateLimit-Limit': String(this.#perMinute),
              'X-RateLimit-Remaining': String(after.remaining),
              'X-RateLimit-Reset': String(Math.ceil(after.resetMs / 1000)),
            }),
        'X-RateLimit-Tier': caller.key_tier,
      },
      retryAfter: refused ? Math.ceil(waitMs / 1000) : undefined,
    };
  }

  /** Takes back the request just counted: another limit refused it, and what is refused counts nowhere. */
  giveBack(caller: Caller, now: number): void {
    if (this.#perMinute > 0) this.#minutes.of(caller.key_id, now).takeBack();
    if (this.#tiers[caller.tenant_tier].hourlyQuota > 0) this.#hours.of(caller.tenant_id, now).takeBack();
  }

  /** Counts a wrong key from an address; throws 429 when there were too many. */
  wrongKey(address: string, now: number): void {
    const window = this.#wrongKeys.of(address, now);
    const state = window.peek(now, wrongKeysAMinute);
    if (!state.allowed) throw tooMany('Too many wrong API keys came from this address.', Math.ceil(state.retryAfterMs / 1000));
    window.add(now, wrongKeysAMinute);
  }
}

/** 429 with the seconds to wait. */
export function tooMany(detail: string, retryAfter: number): ServiceError {
  return new ServiceError('RATE_LIMITED', `${detail} Try again in ${retryAfter} seconds.`, { headers: { 'Retry-After': String(retryAfter) } });
}
