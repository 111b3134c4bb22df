import { type Tier, tiers } from '../model/common.ts';

/** What a tier allows where nothing else is set; the settings may change all but the number of keys. */
export interface TierLimits {
  /** Requests an hour, for a tenant; 0: unlimited. */
  readonly hourlyQuota: number;
  /** Packets a UTC day, for a tenant; Infinity: unlimited. */
  readonly handoffsPerDay: number;
  /** The largest body, or item of a batch, in bytes. */
  readonly packetBytes: number;
}

/** How many keys a new tenant may have. */
export const defaultMaxKeys: Record<Tier, number> = { free: 1, pro: 5, business: 25 };

/** Whether a tier is above another. */
export function isAbove(tier: Tier, other: Tier): boolean {
  return tiers.indexOf(tier) > tiers.indexOf(other);
}

/** The packets a tenant may create a day: its own value, else its tier's. */
export function dailyCap(own: number | null, limits: TierLimits): number {
  return own ?? limits.handoffsPerDay;
}

/** The UTC day of a moment, as `2026-03-01`. */
export function dayOf(now: Date): string {
  return now.toISOString().slice(0, 10);
}

/** Seconds until the next UTC midnight, at least 1. */
export function secondsToMidnight(now: Date): number {
  const midnight = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + 1);
  return Math.max(1, Math.ceil((midnight - now.getTime()) / 1000));
}
