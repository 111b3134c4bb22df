import { type Tier, tiers } from '../model/common.ts';

/** The limits of a tier, as the settings give them. */
export interface TierLimits {
  /** Requests per hour and tenant; 0: unlimited. */
  readonly hourlyQuota: number;
  /** Packets per UTC day and tenant; Infinity: unlimited. */
  readonly handoffsPerDay: number;
  /** The largest body, or item of a batch body, in bytes. */
  readonly packetBytes: number;
  /** The most open connections of a tenant per instance: streams, and requests that wait for work. */
  readonly connections: number;
}

/** The most API keys of a tenant that has no limit of its own. */
export const defaultMaxKeys: Record<Tier, number> = { free: 1, pro: 5, business: 25 };

/** Whether a tier is higher than another. */
export function isAbove(tier: Tier, other: Tier): boolean {
  return tiers.indexOf(tier) > tiers.indexOf(other);
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
