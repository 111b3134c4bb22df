import type { Outage, TimelineRequest } from '../../model/timeline.ts';
import { numberOf } from './draft.ts';

/** An outage being edited, its numbers as texts. */
export interface OutageDraft extends Record<'from_s' | 'to_s' | 'retry_after_ms', string> {
  provider: string;
  condition: Outage['condition'];
}

/** A timeline being edited. */
export interface TimelineDraft extends Record<'rate_per_minute' | 'seconds', string> {
  outages: readonly OutageDraft[];
}

/** A new outage, as in the documentation. */
export const emptyOutage = (provider: string): OutageDraft => ({
  ...{ provider, condition: 'server_error' },
  ...{ from_s: '10', to_s: '70', retry_after_ms: '' },
});

/** A new timeline, in which a provider fails for a minute. */
export const emptyTimeline = (provider: string): TimelineDraft => ({
  ...{ rate_per_minute: '60', seconds: '120' },
  outages: [emptyOutage(provider)],
});

/** The timeline of a request. A number that is missing is refused by the service, beside its field. */
export function timelineRequest({ rate_per_minute, seconds, outages }: TimelineDraft): TimelineRequest {
  const whole = (text: string) => numberOf(text) as number;
  return {
    rate_per_minute: whole(rate_per_minute),
    seconds: whole(seconds),
    outages: outages.map(({ provider, condition, from_s, to_s, retry_after_ms }) => ({
      ...{ provider, condition, from_s: whole(from_s), to_s: whole(to_s) },
      ...(retry_after_ms.trim() === '' ? {} : { retry_after_ms: whole(retry_after_ms) }),
    })),
  };
}
