import { conditions } from '../model/chain.ts';
import type { Outage, TimelineRequest } from '../model/timeline.ts';
import { listed } from '../rules/wording.ts';
import { RehearsalError } from './program.ts';

/** The options of a rehearsal with outages. */
export interface OutageOptions {
  /** The outages, as `PROVIDER CONDITION FROM-TO` in seconds, perhaps with `retry-after SECONDS`. */
  readonly outage?: readonly string[];
  /** The prompts of a minute. */
  readonly rate?: string;
  /** For how many seconds prompts are sent. */
  readonly for?: string;
  readonly preset?: string;
  readonly prompts?: string;
}

/** The usual rate and time, as in the documentation. */
const usual = { rate: '60', for: '120' };

/** The timeline of the options; undefined without an outage. @throws RehearsalError for an outage that can't be read */
export function timelineFrom(options: OutageOptions): TimelineRequest | undefined {
  const { outage, rate, for: time, preset, prompts } = options;
  if (outage === undefined) {
    for (const [flag, value] of Object.entries({ rate, for: time }))
      if (value !== undefined) throw new RehearsalError(`--${flag} is for outages; give --outage as well.`);
    return undefined;
  }
  for (const [flag, value] of Object.entries({ preset, prompts }))
    if (value !== undefined) throw new RehearsalError(`--${flag} cannot be given together with --outage, which sends prompts at a rate.`);
  return {
    rate_per_minute: wholeOf('--rate', rate ?? usual.rate),
    seconds: wholeOf('--for', time ?? usual.for),
    outages: outage.map(outageOf),
  };
}

function outageOf(text: string): Outage {
  const found = /^(.+) (\w+) (\d{1,7})-(\d{1,7})(?: retry-after (\d{1,5}))?$/.exec(text.trim());
  const [, provider, named, from, to, retryAfter] = found ?? [];
  if (found === null)
    throw new RehearsalError(
      `--outage must be a provider, a condition and seconds, such as 'gpt-4o server_error 10-70', perhaps with 'retry-after 20' behind them, not '${text}'.`,
    );
  const condition = conditions.find((one) => one === named);
  if (condition === undefined) throw new RehearsalError(`--outage must have one of the conditions ${listed(conditions)}, not ${named}.`);
  const retry = retryAfter === undefined ? {} : { retry_after_ms: Number(retryAfter) * 1000 };
  return { provider: provider!, from_s: Number(from), to_s: Number(to), condition, ...retry };
}

/** The number of an option. @throws RehearsalError if it is none */
export function wholeOf(flag: string, text: string): number {
  if (/^\d{1,7}$/.test(text)) return Number(text);
  throw new RehearsalError(`${flag} must be a whole number, not ${text}.`);
}
