import { plural } from '../../kit/wording.ts';
import type { Condition } from '../model/chain.ts';
import type { Difference, Expected } from '../model/rehearsal.ts';
import { afterFailure, cooldownOf, emptyMemory, isLeftOut, type Memory } from './cooldown.ts';
import { decide, type Engine, firstPosition, type NextStep } from './engine.ts';
import type { InjectedFault } from './plan.ts';
import { courseOf, differencesFrom, firstDifference, type Groups, type Outcome, receivedDifference } from './rehearsal.ts';
import type { OutSpan } from './timeline.ts';
import { listed } from './wording.ts';

// Compares what a gateway does during outages with what the chain says. Each prompt is compared with what the chain does after
// the failures that have really happened by then, so that a small difference of time does not shift all that follows.

/** How far from the begin and the end of a cool-down a gateway may still be in the time before it, or already in the one behind, in milliseconds; of short cool-downs a quarter of them. */
const toleranceMs = 1000;

/** The most providers of a prompt for which it is open whether they are left out; of further ones the exact time decides. */
const mostOpen = 3;

/** The status of an answer. */
const usualSuccess = 200;

/** How many standard deviations the draws of a group may be from their mean, and one call more. */
const mostDeviations = 4;

/** A call that a gateway made, with times in milliseconds from the start of the timeline. */
export interface MadeCall {
  readonly provider: string;
  readonly condition: Condition | null;
  readonly status_code: number | null;
  /** Whether its failure is one of an outage; the chain expects no other one. */
  readonly injected: boolean;
  readonly start: number;
  readonly end: number;
}

/** How a call of a provider ended, and the prompt whose call it was. */
interface SeenCall extends Pick<MadeCall, 'condition' | 'status_code' | 'injected' | 'start' | 'end'> {
  readonly prompt: number;
  /** Its place among the calls of the prompt. */
  readonly call: number;
  readonly provider: string;
  readonly retry_after_ms: number | null;
}

/** A prompt that a gateway has handled. */
interface PlayedPrompt {
  readonly index: number;
  readonly start: number;
  readonly calls: readonly MadeCall[];
  /** The longest duration of the prompt. */
  readonly deadlineMs: number | null;
}

/** A time in which a provider is left out, and the failure that began it. */
interface CausedSpan extends OutSpan {
  readonly prompt: number;
  readonly call: number;
  readonly condition: Condition;
  readonly status_code: number | null;
}

/** A failure of a provider, whether the chain leaves the provider out by it or not. */
interface SeenFailure {
  readonly condition: Condition;
  readonly status_code: number | null;
  readonly end: number;
  /** Until when a gateway may leave the provider out by it. */
  readonly until: number;
  /** When the first call after the failure began that the provider answered. */
  answered: number;
  /** Of this failure and the earlier failures after which the provider has not answered yet: the failure by which a gateway may leave the provider out longest. */
  longest?: SeenFailure;
}

/** How a prompt compares with the chain. */
export interface ComparedPrompt {
  readonly expected: Expected;
  /** The statuses of the expected calls. */
  readonly statuses: readonly (number | null)[];
  readonly agrees: boolean;
}

/** What a chain says, as far as the comparison of a prompt needs it. */
interface Said {
  readonly expected: Expected;
  readonly statuses: readonly (number | null)[];
  /** How the prompt ends; null if it is served. */
  readonly end: NextStep['end'];
}

/** The calls of a member of a balanced group, and what the draws let expect. */
interface Drawn {
  calls: number;
  made: number;
  mean: number;
  variance: number;
}

/** What a comparison has to know besides the chain. */
interface OutageOptions {
  readonly groups: Groups;
  /** How often a provider is drawn in its group, in proportion to the others; 1 if it is not listed. */
  readonly weights?: ReadonlyMap<string, number>;
  /** How long the gateway leaves out providers by rules that the chain does not have, in milliseconds; 0 if left out. */
  readonly ownCooldownMs?: number;
  /** The failure of a provider that is in an outage. */
  readonly faultAt: (provider: number, at: number) => InjectedFault | undefined;
}

/** The comparison of a timeline, prompt by prompt in the order in which they end. */
export class OutageComparison {
  readonly #engine: Engine;
  readonly #options: OutageOptions;
  #memory: Memory;
  readonly #spans: CausedSpan[] = [];
  readonly #known = new Map<string, Difference>();
  readonly #drawn = new Map<string, Drawn>();
  /** The failures of each provider in order. */
  readonly #failures = new Map<string, SeenFailure[]>();
  #hasFailed = false;

  constructor(engine: Engine, options: OutageOptions) {
    this.#engine = engine;
    this.#options = options;
    this.#memory = emptyMemory(engine.chain);
  }

  /** The failure of a provider that is in an outage. */
  faultNow(provider: number, at: number): InjectedFault | undefined {
    return this.#options.faultAt(provider, at);
  }

  /** The times in which the chain leaves out providers, after the failures so far. */
  get outs(): readonly OutSpan[] {
    return this.#spans;
  }

  /** Whether a call has met an outage. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  /** Remembers how a call ended, if it failed. Calls are told in the order in which they end. */
  ended({ prompt, call, provider: name, condition, status_code, injected, retry_after_ms, start, end }: SeenCall): void {
    this.#hasFailed ||= injected;
    const { chain } = this.#engine;
    const provider = chain.providers.findIndex((one) => one.name === name);
    if (provider === -1) return;
    const failures = this.#failures.get(name) ?? [];
    if (condition === null) {
      const last = failures.findLast((failure) => failure.end <= start);
      for (const failure of [last, last?.longest]) if (failure !== undefined) failure.answered = Math.min(failure.answered, start);
      return;
    }
    const until = end + Math.max(this.#cooldownMsOf(provider), retry_after_ms ?? 0) + this.#toleranceOf(provider);
    const longest = failures.at(-1)?.longest;
    const failure: SeenFailure = { condition, status_code, end, until, answered: Number.POSITIVE_INFINITY };
    failure.longest = longest !== undefined && longest.until > until && longest.answered > end ? longest : failure;
    failures.push(failure);
    this.#failures.set(name, failures);
    const before = this.#memory[provider]!.until;
    this.#memory = afterFailure(chain, this.#memory, provider, { condition, status_code, retry_after_ms }, end);
    const { until: to } = this.#memory[provider]!;
    if (to !== null && to !== before && isLeftOut(this.#memory, provider, end))
      this.#spans.push({ provider, from: end, to, prompt, call, condition, status_code });
  }

  /** Compares a prompt that has ended. `outcomeOf` says how it ended, given what the chain says about it and how it ends in the chain. */
  compare(played: PlayedPrompt, outcomeOf: (expected: Expected, end: NextStep['end']) => Outcome): ComparedPrompt {
    this.#countDraws(played);
    const exact = this.#said(played, new Map());
    const first = outcomeOf(exact.expected, exact.end);
    const isSame = (said: Said, outcome: Outcome) =>
      firstDifference(said.expected, outcome, this.#options.groups) === null && (outcome.fault ?? null) === null;
    if (isSame(exact, first) && this.#strayed(played, new Map()) === undefined) return { ...exact, agrees: true };
    for (const [shifts, chosen] of this.#views(played)) {
      const said = this.#said(played, shifts, chosen);
      if (this.#strayed(played, shifts) === undefined && isSame(said, outcomeOf(said.expected, said.end))) return { ...said, agrees: true };
    }
    this.#note(played, exact, first);
    return { ...exact, agrees: false };
  }

  /** The differences so far; the difference that most prompts have comes first. */
  get items(): Difference[] {
    const items = [...this.#known.values()].sort((one, other) => other.prompts - one.prompts || one.first_index - other.first_index);
    return [...items, ...this.#drawDifferences()];
  }

  /** What the chain does with a prompt, where calls that it shares with the gateway end as they really did. */
  #said({ index, start, calls, deadlineMs }: PlayedPrompt, shifts: ReadonlyMap<number, number>, chosen = start): Said {
    const { chain } = this.#engine;
    const { faultAt } = this.#options;
    const statuses: (number | null)[] = [];
    const attempts: Expected['attempts'] = [];
    const isOut =
      (at: number, shared = 0) =>
      (provider: number) =>
        this.#isOut(provider, at, shifts, { prompt: index, shared });
    const position = firstPosition(this.#engine, isOut(chosen));
    if (position === undefined) return { expected: { served_by: null, attempts }, statuses, end: 'exhausted' };
    let at = start;
    let shared = 0;
    for (let isShared = true; ; ) {
      const provider = chain.providers[position.provider]!;
      const made = calls[attempts.length];
      isShared &&= made !== undefined && this.#groupOf(made.provider) === this.#groupOf(provider.name);
      if (isShared) shared += 1;
      const fault = faultAt(position.provider, at);
      const [condition, status_code] = !isShared
        ? [fault?.condition ?? null, fault?.status_code ?? null]
        : made!.injected
          ? [made!.condition, made!.status_code]
          : [null, usualSuccess];
      at = isShared ? made!.end : at + (condition !== null && status_code === null && condition === 'timeout' ? provider.timeout_ms : 1);
      attempts.push({ provider: provider.name, condition });
      statuses.push(status_code);
      if (condition === null) return { expected: { served_by: provider.name, attempts }, statuses, end: null };
      const failure = { condition, status_code, retry_after_ms: fault?.retry_after_ms ?? null };
      const inputs = { random: () => 0.5, elapsed_ms: at - start, deadline_ms: deadlineMs, isOut: isOut(at, shared) };
      const step = decide(this.#engine, position, failure, inputs);
      if (step.end !== null) return { expected: { served_by: null, attempts }, statuses, end: step.end };
      at += step.wait_ms;
    }
  }

  /** Whether a provider is left out; the time of a provider in `shifts` is shifted by so many milliseconds. The failures that a prompt met in its first `shared` calls count for it at once, whatever the clock says. */
  #isOut(provider: number, at: number, shifts: ReadonlyMap<number, number>, own?: { prompt: number; shared: number }): boolean {
    const seen = at + (shifts.get(provider) ?? 0);
    return this.#spans.some(
      (span) => span.provider === provider && seen < span.to && (span.prompt === own?.prompt ? span.call < own.shared : seen >= span.from),
    );
  }

  /** The last failure of a provider before a time by which a gateway may still leave it out: it has not been called and answered since. */
  #failureBefore(name: string, time: number): SeenFailure | undefined {
    const last = this.#failures.get(name)?.findLast(({ end }) => end <= time);
    return [last, last?.longest].find((failure) => failure !== undefined && time <= failure.until && time < failure.answered);
  }

  /** The first call of a provider that is left out, and was so when the gateway could choose it: at the start, or behind the call before. */
  #strayed(
    { index, start: begin, calls }: PlayedPrompt,
    shifts: ReadonlyMap<number, number>,
  ): { call: number; span: CausedSpan } | undefined {
    for (const [call, { provider: name, start }] of calls.entries()) {
      const provider = this.#indexOf(name);
      const shift = shifts.get(provider) ?? 0;
      const chosen = (calls[call - 1]?.end ?? begin) + shift;
      const isKnown = (one: CausedSpan) => (one.prompt === index ? one.call < call : chosen >= one.from);
      const span = this.#spans.find((one) => one.provider === provider && isKnown(one) && start + shift < one.to);
      if (span !== undefined) return { call, span };
    }
    return undefined;
  }

  /** How a gateway may see a prompt: the times that it takes for the present, and when it chose its first call, which is at last when it made it. */
  *#views(played: PlayedPrompt): Generator<readonly [shifts: ReadonlyMap<number, number>, chosen: number]> {
    const made = played.calls[0]?.start ?? played.start;
    for (const shifts of this.#shifts(played)) for (const chosen of new Set([played.start, made])) yield [shifts, chosen];
  }

  /** The other times that a gateway may take for the present: before and behind the begins and ends of cool-downs that are near. */
  *#shifts({ start, calls }: PlayedPrompt): Generator<ReadonlyMap<number, number>> {
    const end = calls.at(-1)?.end ?? start;
    const open = this.#engine.chain.providers
      .map((_, provider) => ({ provider, tolerance: this.#toleranceOf(provider) }))
      .filter(({ provider, tolerance }) =>
        this.#spans.some(
          (span) => span.provider === provider && [span.from, span.to].some((edge) => edge >= start - tolerance && edge <= end + tolerance),
        ),
      )
      .slice(0, mostOpen);
    const count = 3 ** open.length;
    for (let number = 0; number < count; number += 1)
      yield new Map(
        open.map(({ provider, tolerance }, place) => [provider, ((Math.floor(number / 3 ** place) % 3) - 1) * tolerance] as const),
      );
  }

  #cooldownMsOf(provider: number): number {
    const { chain } = this.#engine;
    return (cooldownOf(chain, chain.providers[provider]!)?.seconds ?? 0) * 1000 || (this.#options.ownCooldownMs ?? 0);
  }

  #toleranceOf(provider: number): number {
    return Math.min(toleranceMs, this.#cooldownMsOf(provider) / 4);
  }

  readonly #indexOf = (name: string) => this.#engine.chain.providers.findIndex((one) => one.name === name);
  readonly #groupOf = (name: string) => this.#options.groups.get(name) ?? name;

  /** Counts the calls of balanced groups, and how probable each draw was, where it is certain who is left out. */
  #countDraws({ calls }: PlayedPrompt): void {
    for (const { provider: drawn, start } of calls) {
      const group = this.#options.groups.get(drawn);
      if (group === undefined) continue;
      const members = [...this.#options.groups].flatMap(([name, of]) => (of === group && this.#indexOf(name) !== -1 ? [name] : []));
      const outs = members.map((name) => {
        const provider = this.#indexOf(name);
        const tolerance = this.#toleranceOf(provider);
        return [-tolerance, 0, tolerance].map((shift) => this.#isOut(provider, start, new Map([[provider, shift]])));
      });
      if (outs.some((states) => new Set(states).size > 1)) continue;
      const left = members.filter((_, index) => !outs[index]![0]);
      const weightOf = (name: string) => this.#options.weights?.get(name) ?? 1;
      const sum = left.reduce((total, name) => total + weightOf(name), 0);
      if (left.length < 2 || sum <= 0) continue;
      for (const name of left) {
        const share = weightOf(name) / sum;
        const one = this.#drawn.get(name) ?? { calls: 0, made: 0, mean: 0, variance: 0 };
        one.calls += 1;
        one.made += name === drawn ? 1 : 0;
        one.mean += share;
        one.variance += share * (1 - share);
        this.#drawn.set(name, one);
      }
    }
  }

  /** The members of balanced groups that got more or fewer calls than draws can explain. */
  #drawDifferences(): Difference[] {
    return [...this.#drawn].flatMap(([provider, { calls, made, mean, variance }]): Difference[] => {
      const most = mostDeviations * Math.sqrt(variance) + 1;
      if (Math.abs(made - mean) <= most) return [];
      // Who is left out changes what is drawn.
      const ofGroup = [...this.#failures].filter(([name]) => this.#groupOf(name) === this.#groupOf(provider));
      const condition = ofGroup.map(([, failures]) => failures.at(-1)!).sort((one, other) => other.end - one.end)[0]?.condition ?? null;
      const [least, greatest] = [Math.max(Math.ceil(mean - most), 0), Math.min(Math.floor(mean + most), calls)];
      return [
        {
          ...{ provider, condition, status_code: null, kind: 'draws', stream: null, second: null },
          expected: { calls: [{ provider, calls: Math.round(mean) }], served_by: null },
          actual: { calls: [{ provider, calls: made }], served_by: null },
          ...{ prompts: calls, first_index: 0 },
          sentence: `Of ${plural(calls, 'draw')} of its group, ${provider} got ${made}; between ${least} and ${greatest} were to be expected.`,
        },
      ];
    });
  }

  /** Keeps what differs in a prompt. */
  #note(played: PlayedPrompt, { expected, statuses }: Said, outcome: Outcome): void {
    const at = firstDifference(expected, outcome, this.#options.groups);
    const strayed = this.#strayed(played, new Map());
    const time = `At ${seconds(played.start)} s`;
    if (strayed !== undefined && strayed.call <= (at ?? Number.POSITIVE_INFINITY)) {
      const { span } = strayed;
      const provider = this.#engine.chain.providers[span.provider]!.name;
      const sentence = `${time}, the gateway called ${provider}, which the chain leaves out until ${seconds(span.to)} s since its ${span.condition} at ${seconds(span.from)} s.`;
      this.#add(`out ${provider} ${span.condition}`, played, {
        ...this.#between(expected, outcome),
        provider,
        condition: span.condition,
        status_code: span.status_code,
        kind: 'cooldown',
        sentence,
      });
      return;
    }
    const skipped = at === null ? undefined : this.#skipped(at, played, expected);
    if (at !== null && (skipped !== undefined || (at === 0 && outcome.attempts.length > 0))) {
      const called = outcome.attempts.slice(at).map(({ provider }) => provider);
      const did = called.length === 0 ? `called nobody${at === 0 ? '' : ' else'}` : `called ${listed([...new Set(called)])}`;
      const { provider, failure } = skipped ?? { provider: called[0]!, failure: this.#failureBefore(called[0]!, played.start) };
      const { condition, status_code } = failure ?? { condition: null, status_code: null };
      const where = at === 0 ? '' : ` behind the failure of ${expected.attempts[at - 1]!.provider}`;
      const says = skipped === undefined ? 'the chain leaves out all providers' : `the chain calls ${provider}, which is not left out`;
      const sentence = `${time}${where}, ${says}; the gateway ${did}.`;
      this.#add(`not ${provider} ${condition} ${at === 0}`, played, {
        ...this.#between(expected, outcome),
        provider,
        condition,
        status_code,
        kind: condition === null ? 'calls' : 'cooldown',
        sentence,
      });
      return;
    }
    const statusOf = (attempt: number) => statuses[attempt] ?? null;
    const { stream = false } = outcome;
    if (at === null) {
      const found = receivedDifference(expected, outcome, statusOf);
      this.#add(found.sentence, played, { ...found, stream, sentence: `${time}: ${found.sentence}` });
      return;
    }
    const kind = at === Math.max(expected.attempts.length, outcome.attempts.length) ? 'end' : 'calls';
    for (const found of differencesFrom(at, expected, outcome, statusOf))
      this.#add(found.sentence, played, { ...found, kind, stream, sentence: `${time}: ${found.sentence}` });
  }

  /** The provider that the chain calls behind `at` calls and the gateway does not, with its last failure: at the start, or where it fails over to one that has failed before. */
  #skipped(
    at: number,
    { start, calls }: PlayedPrompt,
    { attempts }: Expected,
  ): { provider: string; failure: SeenFailure | undefined } | undefined {
    const provider = attempts[at]?.provider;
    if (provider === undefined) return undefined;
    const failure = this.#failureBefore(provider, at === 0 ? start : (calls[at - 1]?.end ?? start));
    if (at === 0) return { provider, failure };
    const isCalled = calls.slice(at).some((call) => this.#groupOf(call.provider) === this.#groupOf(provider));
    return failure === undefined || provider === attempts[at - 1]!.provider || isCalled ? undefined : { provider, failure };
  }

  readonly #between = (expected: Expected, outcome: Outcome) => ({
    stream: outcome.stream ?? false,
    expected: courseOf(expected.attempts, expected.served_by),
    actual: courseOf(outcome.attempts, outcome.served_by),
  });

  #add(key: string, { index, start }: PlayedPrompt, difference: Omit<Difference, 'prompts' | 'first_index' | 'second'>): void {
    const known = this.#known.get(key);
    if (known === undefined) {
      this.#known.set(key, { ...difference, second: Math.floor(start / 1000), prompts: 1, first_index: index });
      return;
    }
    const isEarlier = index < known.first_index;
    const first = isEarlier ? { ...difference, first_index: index, second: Math.floor(start / 1000) } : {};
    const stream = known.stream === difference.stream ? known.stream : null;
    this.#known.set(key, { ...known, ...first, stream, prompts: known.prompts + 1 });
  }
}

/** Milliseconds in seconds with a tenth. */
const seconds = (ms: number): string => String(Math.round(ms / 100) / 10);
