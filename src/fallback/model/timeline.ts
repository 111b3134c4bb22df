import Type, { type Static } from 'typebox';

import { choice, described, object, orNull } from '../../kit/schemas.ts';
import { conditions } from './chain.ts';
import { count, optional, whole } from './common.ts';

/** The limits of a timeline. Its calls are prompts of a test, of which there is a limit as well. */
export const maxTimelineSeconds = 3600;
export const maxRate = 6000;
const maxOutages = 100;

const condition = choice(conditions, { description: 'How it fails.' });

export const Outage = described('A failure of a provider that lasts.', {
  provider: Type.String({ maxLength: 256, description: 'The name of the provider that fails.' }),
  from_s: whole(0, maxTimelineSeconds, 'The second in which it begins.'),
  to_s: whole(1, maxTimelineSeconds, 'The second in which it is over.'),
  condition,
  retry_after_ms: optional(whole(0, 86_400_000, 'The value of Retry-After.')),
});

export const TimelineRequest = described(
  'Prompts at a steady rate through a chain with its cool-downs, while providers fail for a while.',
  {
    rate_per_minute: whole(1, maxRate, 'The prompts of a minute, evenly spaced; the first one is at 0.'),
    seconds: whole(1, maxTimelineSeconds, 'How long prompts are sent.'),
    outages: Type.Array(Outage, { maxItems: maxOutages, description: 'The failures; at a provider, the first one that matches decides.' }),
  },
);

const second = (description: string) => Type.Number({ minimum: 0, description });

export const TimelineSecond = object({
  second: count('The second, from 0. Those after the last prompt are only listed if they have calls.'),
  calls: Type.Array(
    object({
      provider: Type.String({ description: 'The provider that was called in this second.' }),
      condition: orNull(condition, 'How it failed; null if it answered.'),
    }),
  ),
  out: Type.Array(
    object({
      provider: Type.String({ description: 'A provider that is left out by its cool-down, for some of this second.' }),
      until_s: second('When it is back.'),
    }),
  ),
  failed: count('The prompts begun in this second that were lost.'),
  slow: count('The prompts begun in this second that were served after a failed call.'),
});

export const Timeline = described('What a test with a timeline did, second by second.', {
  rate_per_minute: whole(1, maxRate, 'The prompts of a minute, as asked for.'),
  outages: Type.Array(Outage, { description: 'The failures, as asked for.' }),
  seconds: Type.Array(TimelineSecond),
  only_last: Type.Array(object({ from_s: second('The begin.'), to_s: second('The end.') }), {
    description: 'When all providers but the last one were left out or failed.',
  }),
  first_back_s: orNull(
    second('A time.'),
    'When the first provider answered for the first time after its last failure; null if it did not fail, or did not answer again.',
  ),
  cost: orNull(Type.Number({ minimum: 0 }), 'The cost of all calls in US dollars; null if a price or the tokens are unknown.'),
});

export type Outage = Static<typeof Outage>;
export type TimelineRequest = Static<typeof TimelineRequest>;
export type Timeline = Static<typeof Timeline>;
