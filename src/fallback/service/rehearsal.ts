import { type ChainDefinition, maxProviders } from '../model/chain.ts';
import type { Agreement, Difference, Expected } from '../model/rehearsal.ts';
import type { Attempt } from '../model/test.ts';
import type { TimelineRequest } from '../model/timeline.ts';
import {
  type FakeCall,
  type FakeReaction,
  fakeModels,
  fakeOperation,
  fakeReaction,
  fakeRefusal,
  fakeRequestOf,
  fakeUnknown,
} from '../providers/fake.ts';
import { ofStream } from '../rules/conditions.ts';
import { type Engine, matchingRule } from '../rules/engine.ts';
import { playedKind } from '../rules/kinds.ts';
import { OutageComparison } from '../rules/outages.ts';
import { faultAt, type InjectedFault, outagesOf, type Scene } from '../rules/plan.ts';
import { refusalOf } from '../rules/published-params.ts';
import { agrees, Differences, failuresOfGroup, type Groups, isTested, marksIn, type Outcome } from '../rules/rehearsal.ts';
import { withEnd } from '../rules/stream-faults.ts';

/** The most calls of the fake providers of a chain at a time. */
export const maxFakeCalls = 64;

/** The most calls of one prompt that are kept, and the most providers that are called when their prompts are over; further calls are stray. */
const maxCallsOfPrompt = 10_000;
const maxLateProviders = maxProviders;

/** A call that arrived at a fake provider. */
export interface FakeRequest {
  /** The name of the provider in the path. */
  readonly provider: string;
  /** The path behind it. */
  readonly path: string;
  /** The body as text. */
  readonly body: string;
}

/** What to do with a call. */
export interface FakeExchange {
  readonly reaction: FakeReaction;
  /** How long to wait before it, in milliseconds. */
  readonly latencyMs: number;
  /** Called when the exchange is over. */
  readonly done: () => void;
}

/** A call of a fake provider within a prompt. */
interface Call extends Pick<Attempt, 'provider' | 'model_id' | 'status_code' | 'condition' | 'injected'> {
  readonly start: number;
  end: number | null;
}

/** Outages in time: the failures of the fake providers follow the clock, and gateways remember them. */
export interface RehearsedOutages {
  readonly request: TimelineRequest;
  readonly comparison: OutageComparison;
  /** The time since the first prompt, in milliseconds. */
  elapsed(): number;
  /** The time from the first prompt to one of the clock. */
  since(time: number): number;
}

/** Whether a gateway did in a prompt what the chain says, and whether that tests something. */
export interface Compared {
  readonly agrees: boolean;
  readonly tested: boolean;
}

/** A prompt that a gateway is handling. */
interface OpenPrompt {
  readonly index: number;
  readonly scene: Scene;
  readonly seed: number;
  readonly expected: Expected;
  readonly begin: number;
  readonly calls: Call[];
  /** How many of them each provider got, or each balanced group. */
  readonly counts: Map<string, number>;
}

/** Calls that came when their prompts were over, and the indexes of these prompts. */
interface LateCalls {
  calls: number;
  readonly prompts: Set<number>;
}

/** A running rehearsal: its fake providers and the calls that they got. */
export class Rehearsal {
  readonly #engine: Engine;
  readonly #now: () => number;
  readonly #groups: Groups;
  readonly #differences: Differences;
  readonly #open = new Map<string, OpenPrompt>();
  /** The indexes of prompts that are over, by mark; null for those that were sent again. */
  readonly #closed = new Map<string, number | null>();
  /** The calls of each provider that came when their prompt was over. */
  readonly #late = new Map<string, LateCalls>();
  readonly #differing = new Set<number>();
  #untested = 0;
  #sentAgain = 0;
  /** Ends calls in progress. */
  readonly #releases = new Set<() => void>();
  #prompts = 0;
  #strayCalls = 0;
  #inProgress = 0;
  #problem: string | null = null;
  readonly outages: RehearsedOutages | undefined;

  /**
   * @param now a monotonic clock, in milliseconds
   * @param options the balanced groups of the gateway, and a timeline
   */
  constructor(engine: Engine, now: () => number, { groups = new Map(), weights, timeline, ownCooldownMs = 0 }: RehearsalRun = {}) {
    this.#groups = groups;
    this.outages = timeline && outagesFor(engine, now, timeline, { groups, ...(weights && { weights }), ownCooldownMs });
    this.#differences = new Differences(groups);
    this.#engine = engine;
    this.#now = now;
  }

  get chain(): ChainDefinition {
    return this.#engine.chain;
  }

  /** Counts a call in; undefined if there are too many at once. The result counts it out. */
  reserveCall(): (() => void) | undefined {
    if (this.#inProgress >= maxFakeCalls) return undefined;
    this.#inProgress += 1;
    return () => {
      this.#inProgress -= 1;
    };
  }

  /** Begins a prompt, whose calls carry `mark`; returns the time at which it began, from which the times of its calls are counted. */
  begin(mark: string, prompt: Pick<OpenPrompt, 'index' | 'scene' | 'seed' | 'expected'>): number {
    const begin = this.#now();
    this.#open.set(mark, { ...prompt, begin, calls: [], counts: new Map() });
    return begin;
  }

  /** Decides what a fake provider does with a call. `release` ends the exchange early, when the rehearsal is over. */
  answerCall({ provider, path, body }: FakeRequest, release: () => void): FakeExchange {
    const operation = fakeOperation(path);
    const request = fakeRequestOf(body);
    const { model } = request;
    const endpoint = operation === 'models' ? 'chat' : (operation ?? 'chat');
    const called = this.chain.providers.find(({ name }) => name === provider);
    const ofProtocol = endpoint === 'messages' ? 'anthropic' : 'openai';
    const asked: FakeCall = { ...request, provider, endpoint, kind: called === undefined ? ofProtocol : playedKind(called) };
    if (operation === 'models') return answered(fakeModels(model));
    const marks = marksIn(body);
    const prompt = marks.map((mark) => this.#open.get(mark)).find((open) => open !== undefined);
    if (prompt === undefined || prompt.calls.length >= maxCallsOfPrompt) {
      this.#countOutside(provider, marks);
      return answered(fakeReaction(asked, undefined));
    }
    const { providers } = this.chain;
    const index = providers.findIndex(({ name }) => name === provider);
    const call: Call = { provider, model_id: model, status_code: 200, condition: null, injected: false, start: this.#now(), end: null };
    const counted = this.#groups.get(provider) ?? provider;
    const nth = prompt.counts.get(counted) ?? 0;
    prompt.counts.set(counted, nth + 1);
    const place = prompt.calls.push(call) - 1;
    this.#releases.add(release);
    const done = (fault?: InjectedFault) => {
      this.#releases.delete(release);
      if (call.end !== null) return;
      call.end = this.#now();
      const { condition, status_code, injected } = call;
      this.outages?.comparison.ended({
        ...{ prompt: prompt.index, call: place, provider, condition, status_code, injected },
        start: this.outages.since(call.start),
        end: this.outages.since(call.end),
        retry_after_ms: fault?.retry_after_ms ?? null,
      });
    };
    if (index === -1 || operation === undefined) {
      Object.assign(call, { status_code: 404, condition: 'invalid_request' });
      const reaction = fakeUnknown(index === -1 ? `provider ${provider} in this chain` : `path ${path}`);
      return { reaction, latencyMs: 0, done: () => done() };
    }
    const { model_id, timeout_ms } = providers[index]!;
    const refusal = refusalOf(providers[index]!, operation, request.body);
    if (refusal !== undefined) {
      Object.assign(call, { model_id, status_code: refusal.status, condition: 'unsupported_request' });
      return { reaction: fakeRefusal(refusal), latencyMs: 0, done: () => done() };
    }
    const fault =
      this.outages === undefined ? this.#faultOf(prompt, index, nth) : this.outages.comparison.faultNow(index, this.outages.elapsed());
    const reaction = fakeReaction(asked, fault && withEnd(fault, providers[index]!));
    const latencyMs = fault?.inStream === undefined ? (fault?.latency_ms ?? 0) : 0;
    const isSilent = reaction === 'silence' || latencyMs > timeout_ms;
    const isLate = fault?.condition === ofStream.late;
    const status_code = isSilent || isLate || typeof reaction === 'string' ? null : reaction.status;
    Object.assign(call, {
      model_id,
      status_code,
      condition: isSilent && !isLate ? 'timeout' : (fault?.condition ?? null),
      injected: fault !== undefined,
    });
    return { reaction, latencyMs, done: () => done(fault) };
  }

  /** The failure of the `nth` call of a provider, or of its balanced group as far as the chain calls it. */
  #faultOf({ scene, seed, index: prompt, expected }: OpenPrompt, provider: number, nth: number): InjectedFault | undefined {
    const names = this.chain.providers.map(({ name }) => name);
    const group = this.#groups.get(names[provider]!);
    const isOfGroup = (name: string) => group !== undefined && this.#groups.get(name) === group;
    if (!expected.attempts.some((attempt) => isOfGroup(attempt.provider))) return faultAt(scene, { provider, nth, prompt }, seed);
    return failuresOfGroup({ scene, seed, prompt, names }, expected, isOfGroup)(nth);
  }

  /** Counts a call that is none of an open prompt: a late one if its mark is known, else a stray one. */
  #countOutside(provider: string, marks: readonly string[]): void {
    const prompt = marks.map((mark) => this.#closed.get(mark)).find((index) => index !== undefined);
    if (prompt === null) return;
    const late = this.#late.get(provider) ?? { calls: 0, prompts: new Set<number>() };
    if (prompt === undefined || (late.calls === 0 && this.#late.size >= maxLateProviders)) {
      this.#strayCalls += 1;
      return;
    }
    late.calls += 1;
    late.prompts.add(prompt);
    this.#late.set(provider, late);
  }

  /** Ends a prompt; returns its calls as attempts. */
  end(mark: string): Attempt[] {
    const { index, calls, begin } = this.#open.get(mark)!;
    this.#open.delete(mark);
    this.#closed.set(mark, index);
    const now = this.#now();
    return calls.map((call, position) => {
      const { start, end, ...fields } = call;
      const next = calls[position + 1];
      const finished = Math.min(end ?? now, next?.start ?? Number.POSITIVE_INFINITY);
      return {
        ...fields,
        start_ms: rounded(start - begin),
        latency_ms: rounded(finished - start),
        action: call.condition === null ? null : next === undefined ? 'fail' : next.provider === call.provider ? 'retry' : 'failover',
        wait_ms: next === undefined ? 0 : rounded(next.start - finished),
        rule: this.#ruleOf(call),
        error: call.injected && call.condition !== null ? 'injected' : null,
        cost_usd: 0,
      };
    });
  }

  /** Counts a prompt that only agreed when it was sent again. */
  countAgain(): void {
    this.#sentAgain += 1;
  }

  /** Counts no further call of a prompt that is over, since it is sent again. */
  forget(mark: string): void {
    this.#closed.set(mark, null);
  }

  /** The rule that decides about a failed call. */
  #ruleOf({ provider, condition, status_code }: Call): number | null {
    const index = this.chain.providers.findIndex(({ name }) => name === provider);
    return condition === null || index === -1 ? null : matchingRule(this.#engine, index, { condition, status_code });
  }

  /** Whether a finished prompt is what the chain says. */
  agrees(expected: Expected, actual: Outcome): boolean {
    return agrees(expected, actual, this.#groups);
  }

  /** Compares a finished prompt with what the chain says. */
  compare(index: number, expected: Expected, actual: Outcome, statusOf: (attempt: number) => number | null): Compared {
    this.#prompts += 1;
    const isSame = this.#differences.compare(index, expected, actual, statusOf);
    const tested = !isSame || isTested(expected, actual);
    if (!isSame) this.#differing.add(index);
    if (!tested) this.#untested += 1;
    return { agrees: isSame, tested };
  }

  /** Counts a prompt of a timeline, which was compared with what the chain says. */
  count(index: number, isSame: boolean): void {
    this.#prompts += 1;
    if (!isSame) this.#differing.add(index);
  }

  /** Counts a prompt that was not sent. */
  leaveOut(): void {
    this.#prompts += 1;
    this.#untested += 1;
  }

  /** Notes why the gateway is not usable, once. */
  markUnusable(sentence: string): void {
    this.#problem ??= sentence;
  }

  /** Why the gateway is not usable; null if it is. */
  get problem(): string | null {
    return this.#problem;
  }

  /** The comparison so far. */
  figures(): { agreement: Agreement; differences: Difference[] } {
    const late = [...this.#late].map(([provider, calls]) => lateDifference(provider, calls));
    const differing = new Set([...this.#differing, ...[...this.#late.values()].flatMap(({ prompts }) => [...prompts])]).size;
    // Outages that no call has met test nothing.
    const { request, comparison } = this.outages ?? {};
    const isIdle = request !== undefined && request.outages.length > 0 && comparison?.hasFailed === false;
    const untested = isIdle ? this.#prompts - differing : this.#untested;
    const agreement = {
      prompts: this.#prompts,
      agreeing: Math.max(this.#prompts - differing - untested, 0),
      differing,
      not_tested: untested,
      sent_again: this.#sentAgain,
      stray_calls: this.#strayCalls,
    };
    return { agreement, differences: [...(comparison?.items ?? []), ...this.#differences.items, ...late] };
  }

  /** Ends the calls in progress. */
  close(): void {
    for (const release of this.#releases) release();
  }
}

/** What a rehearsal has to know besides its chain. */
interface RehearsalRun {
  readonly groups?: Groups;
  readonly weights?: ReadonlyMap<string, number>;
  readonly timeline?: TimelineRequest;
  readonly ownCooldownMs?: number;
}

/** The outages of a timeline that begins when its time is asked for first. */
function outagesFor(
  engine: Engine,
  now: () => number,
  request: TimelineRequest,
  options: Pick<RehearsalRun, 'weights' | 'ownCooldownMs'> & { readonly groups: Groups },
): RehearsedOutages {
  let begin: number | undefined;
  const since = (time: number) => {
    begin ??= time;
    return time - begin;
  };
  const comparison = new OutageComparison(engine, { ...options, faultAt: outagesOf(engine.chain, request) });
  return { request, comparison, since, elapsed: () => since(now()) };
}

const answered = (reaction: FakeReaction): FakeExchange => ({ reaction, latencyMs: 0, done: () => undefined });

/** The difference of calls that came when the caller had its answer. */
function lateDifference(provider: string, { calls, prompts }: LateCalls): Difference {
  return {
    provider,
    condition: null,
    status_code: null,
    kind: 'calls',
    stream: null,
    second: null,
    expected: { calls: [], served_by: null },
    actual: { calls: [{ provider, calls }], served_by: null },
    prompts: prompts.size,
    first_index: Math.min(...prompts),
    sentence: `The gateway called ${provider} after it had answered the caller: the chain ends there.`,
  };
}

const rounded = (ms: number) => Math.round(Math.max(ms, 0) * 100) / 100;

/** The rehearsals that run on this instance. */
export class Rehearsals {
  readonly #byToken = new Map<string, Rehearsal>();
  readonly #chains = new Set<string>();

  /** Begins to answer the calls with a chain's token. Returns what ends that; undefined if a rehearsal of the chain runs already. */
  start(chainId: string, token: string, rehearsal: Rehearsal): (() => void) | undefined {
    if (this.#chains.has(chainId)) return undefined;
    this.#chains.add(chainId);
    this.#byToken.set(token, rehearsal);
    return () => {
      rehearsal.close();
      this.#chains.delete(chainId);
      this.#byToken.delete(token);
    };
  }

  find(token: string): Rehearsal | undefined {
    return this.#byToken.get(token);
  }
}
