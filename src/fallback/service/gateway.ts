import { pauseFor } from '../../kit/awaitable.ts';
import { type Fault, invalid, invalidRequest } from '../../kit/errors.ts';
import type { RandomSource } from '../../kit/id.ts';
import { duration } from '../../kit/wording.ts';
import { type ChainDefinition, type Provider, providerDefaults } from '../model/chain.ts';
import type { Expected, Gateway } from '../model/rehearsal.ts';
import type { Received } from '../model/request.ts';
import { type GatewayFormat, gatewayFormats, gatewayOf, type RehearsalFormat } from '../model/targets.ts';
import type { Attempt, PromptResult } from '../model/test.ts';
import { callProvider, ReceivedAnswer } from '../providers/calls.ts';
import { type PromptRun, runPrompt } from '../providers/executor.ts';
import { instantSimulation } from '../providers/simulate.ts';
import type { CallResult } from '../providers/transport.ts';
import { ofStream } from '../rules/conditions.ts';
import { mayLeave } from '../rules/key-grants.ts';
import type { InjectedFault, Scene } from '../rules/plan.ts';
import { faultOfReceived, receivedOf, sentShape } from '../rules/received.ts';
import { expectedOf, marked, type Outcome } from '../rules/rehearsal.ts';
import { filler, plainShape, type Shape } from '../rules/shapes.ts';
import type { FinishedPrompt } from '../rules/statistics.ts';
import { exportForRehearsal } from '../rules/targets/rehearsal.ts';
import { gateways } from '../rules/targets/table.ts';
import { type LiveDependencies, requireKey } from './live.ts';
import type { RehearsalOptions } from './prepare.ts';
import type { Rehearsal } from './rehearsal.ts';

/** How long a prompt waits for calls that come after the answer, in milliseconds. */
const settleMs = 50;

/** The default time of a prompt: twice as long as the chain needs, but at least this long, in milliseconds. */
const leastTimeoutMs = 30_000;

/** A text without meaning that ends with a mark. It has `length` characters, or as many as the mark needs if these are more. */
const markedFiller = (length: number, mark: string): string =>
  marked(filler(Math.max(length - marked('', mark).length, 0)), mark).trimStart();

/** A gateway that is called: its address as a provider, its key and its headers. */
interface CalledGateway {
  readonly provider: Provider;
  readonly key: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number | null;
}

/** Headers that the request itself determines. */
const ownHeaders = new Set(['host', 'content-length', 'connection', 'transfer-encoding', 'upgrade', 'expect', 'te', 'trailer']);

/**
 * Prepares the calls of a gateway.
 * @param base the address of the fake providers, for the configuration in a header
 * @throws ServiceError 400 with all faults: an address that may not be reached, a key that may not be sent
 */
export async function prepareGateway(
  { url, model, api_key_env, headers, timeout_ms }: Gateway,
  chain: ChainDefinition,
  base: string,
  live: Pick<LiveDependencies, 'environment' | 'grants' | 'urlProblem'> & { readonly config?: RehearsalOptions['config'] | undefined },
): Promise<CalledGateway> {
  const problem = /[?#]/.test(url) ? 'The URL must end with its path.' : await live.urlProblem(url);
  if (problem !== undefined) throw invalid('gateway.url', `gateway.url cannot be called. ${problem}`);
  const faults: Fault[] = [];
  const refuse = (field: string, detail: string) => {
    faults.push({ field: `gateway.${field}`, detail });
  };
  const variable = api_key_env ?? null;
  if (variable !== null && !mayLeave(variable, url, live.grants)) {
    const { host } = new URL(url);
    refuse('api_key_env', `${variable} may not be sent to ${host}: SERVICE_LIVE_KEYS does not list ${variable}@${host}.`);
  }
  const key = variable === null || faults.length > 0 ? undefined : requireKey(variable, 'the gateway', live, refuse);
  for (const name of Object.keys(headers ?? {}))
    if (ownHeaders.has(name.toLowerCase())) refuse(`headers.${name}`, `gateway.headers.${name} is set by the request itself.`);
  if (faults.length > 0) throw invalidRequest(faults);
  const filled = Object.entries(headers ?? {}).map(([name, value]) => [
    name,
    value === '{config}' ? headerText(live.config?.() ?? exportedConfig(chain, base)) : value,
  ]);
  return {
    provider: {
      ...providerDefaults,
      name: 'gateway',
      model_id: model ?? gateways[usualGateway].modelOf(chain),
      provider: null,
      api_base: url,
    },
    key,
    headers: Object.fromEntries(filled) as Record<string, string>,
    timeoutMs: timeout_ms ?? null,
  };
}

/** The gateway whose model is called if a request names none. */
const [usualGateway] = gatewayFormats as [GatewayFormat];

/** The gateway that gets its configuration with each request. */
const headerFormat = gatewayFormats.find((format) => gatewayOf(format).configHeader !== null)!;

/** The format of the export that a gateway runs; undefined if nothing says that it runs one. */
export const formatOf = ({ export_format: format, headers }: Gateway): RehearsalFormat | undefined =>
  format ?? (Object.values(headers ?? {}).includes('{config}') ? headerFormat : undefined);

/** Its rehearsal export. */
const exportedConfig = (chain: ChainDefinition, base: string): unknown =>
  exportForRehearsal(headerFormat, { chain, prefer: 'failover' }, base).config;

/** A configuration as the value of a header. */
function headerText(config: unknown): string {
  return JSON.stringify(config).replace(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** What the prompts of a rehearsal share. */
export interface GatewayRunDependencies {
  gateway: CalledGateway;
  rehearsal: Rehearsal;
  live: Pick<LiveDependencies, 'outgoing' | 'clock' | 'now'>;
  random: RandomSource;
  /** Whether the gateway remembers failures, so that a scene that is sent again would meet its own. */
  keepsState: boolean;
}

/** Returns a function that runs a prompt through a gateway, and compares its calls with what the chain says. */
export function gatewayRun(parts: GatewayRunDependencies): (run: PromptRun) => Promise<FinishedPrompt> {
  const streams = new StreamTrials();
  const again = new OneByOne();
  return async (run) => {
    const shape = run.scene.shape ?? plainShape;
    const trial = streams.of(shape, run.scene);
    if (trial.isFirst) {
      const finished = await played(parts, again, run, shape).catch((error: unknown) => {
        trial.end(false);
        throw error;
      });
      trial.end(finished.result.success);
      return finished;
    }
    return (await trial.works) ? played(parts, again, run, shape) : leftOut(parts, run, shape);
  };
}

/** Whether the healthy streamed answer of each shape arrives, which the other streamed scenes wait for. */
class StreamTrials {
  readonly #trials = new Map<Shape, { works: Promise<boolean>; end: (works: boolean) => void }>();

  of(shape: Shape, { faults }: Scene) {
    const known = this.#trials.get(shape);
    if (known !== undefined) return { ...known, isFirst: false };
    // The scenes start in order. If the plan has a scene with a stream and no failure, it is the first of the scenes with streams.
    const isFirst = shape.stream && faults.length === 0;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    if (!isFirst) resolve(true);
    const trial = { works: promise, end: resolve };
    this.#trials.set(shape, trial);
    return { ...trial, isFirst };
  }
}

/** A prompt that is not sent, since the gateway does not stream at all. */
async function leftOut({ rehearsal }: GatewayRunDependencies, run: PromptRun, shape: Shape): Promise<FinishedPrompt> {
  const { result, end } = await runPrompt({ ...run, transport: instantSimulation });
  rehearsal.leaveOut();
  const { index, scene } = run;
  const nothing = { index, scenario: scene.name, success: false, served_by: null, latency_ms: 0, error: null };
  const compared = { expected: expectedOf(result), agrees: true, tested: false, request: sentShape(shape) };
  return { scene, end: end ?? 'rule', result: resultOf(nothing, [], compared) };
}

/**
 * How often a scene is sent if the gateway does not do what the chain says, and that may be a matter of time: a busy machine may only be
 * slow, so that the gateway gives a call up, or has not read the content when the connection breaks behind it.
 */
const mostTries = 3;

/** Whether a failure depends on time: a silence, or a connection that breaks behind content. */
const isTimed = ({ condition, inStream }: InjectedFault) =>
  inStream === undefined
    ? condition === ofStream.broken || condition === ofStream.late
    : inStream.way === 'stall' || (inStream.way === 'cut' && inStream.afterChunks > 0);

/** The shortest limit of a chain's providers, in milliseconds. */
const shortestLimit = ({ providers }: ChainDefinition): number =>
  Math.min(
    ...providers.flatMap(({ timeout_ms, first_token_ms, idle_ms }) => [timeout_ms, first_token_ms ?? timeout_ms, idle_ms ?? timeout_ms]),
  );

/** Runs what it is given one after the other. */
class OneByOne {
  #last: Promise<unknown> = Promise.resolve();

  next<T>(act: () => Promise<T>): Promise<T> {
    const acted = this.#last.then(act);
    this.#last = acted.catch(() => undefined);
    return acted;
  }
}

/** A prompt that the gateway was sent. */
async function played(parts: GatewayRunDependencies, again: OneByOne, run: PromptRun, shape: Shape): Promise<FinishedPrompt> {
  const { rehearsal } = parts;
  const expected = await runPrompt({ ...run, transport: instantSimulation });
  // Half of a limit is more than a gateway takes by itself.
  const lateMs = expected.result.latency_ms + shortestLimit(rehearsal.chain) / 2;
  const mayBeSlow = (elapsed: number) => elapsed > lateMs || run.scene.faults.some(isTimed);
  const send = () => sent(parts, run, shape, expected);
  let one = await send();
  const most = parts.keepsState ? 1 : mostTries;
  for (let tries = 1; tries < most && !one.agrees && !one.isEnded && mayBeSlow(one.elapsed); tries += 1) {
    rehearsal.forget(one.mark);
    one = await again.next(send);
    if (one.agrees) rehearsal.countAgain();
  }
  return one.finish();
}

/** A prompt that was sent. */
interface Sent {
  readonly mark: string;
  readonly agrees: boolean;
  /** How long the gateway took, in milliseconds. */
  readonly elapsed: number;
  /** Whether the rehearsal ended it, since there was no answer in time: another try would take as long. */
  readonly isEnded: boolean;
  /** Records the comparison with what the chain says. */
  readonly finish: () => FinishedPrompt;
}

/** Sends a prompt to the gateway. */
async function sent(parts: GatewayRunDependencies, run: PromptRun, shape: Shape, expected: FinishedPrompt): Promise<Sent> {
  const { rehearsal } = parts;
  const { index } = run;
  const said = expectedOf(expected.result);
  const asked = await askGateway(parts, run, shape, { said, usualMs: 2 * expected.result.latency_ms });
  const statusOf = (attempt: number) => expected.result.attempts[attempt]!.status_code;
  const outcome = outcomeOf(asked, shape, said, expected.end);
  const finish = () => {
    if (asked.problem !== undefined) rehearsal.markUnusable(asked.problem);
    return finishedOf(run, asked, shape, {
      said,
      end: expected.end ?? 'rule',
      ...rehearsal.compare(index, said, outcome, statusOf),
    });
  };
  const { mark, elapsedMs: elapsed, answer } = asked;
  return { mark, agrees: outcome.fault === null && rehearsal.agrees(said, outcome), elapsed, isEnded: isUnanswered(answer), finish };
}

/** What a gateway did with a prompt. */
interface Asked {
  /** The mark of its prompt. */
  readonly mark: string;
  /** When it began, by the clock of the rehearsal. */
  readonly begin: number;
  readonly attempts: Attempt[];
  readonly answer: CallResult;
  readonly received: Received;
  readonly elapsedMs: number;
  /** Why the gateway is not usable; undefined if it is. */
  readonly problem: string | undefined;
  /** That the rehearsal ended the prompt while the gateway was busy with it; null if it did not. */
  readonly ended: Ended | null;
}

/** A prompt that the rehearsal ended. */
interface Ended {
  /** As the end of a sentence about the gateway. */
  readonly sentence: string;
  /** Whether its own deadline was over, at which the chain may end it as well. */
  readonly isDeadline: boolean;
}

/** Sends a prompt to the gateway, and collects its calls. */
export async function askGateway(
  { gateway, rehearsal, live, random }: GatewayRunDependencies,
  { index, scene, seed, deadlineMs, signal, callSignal, prompt: text }: PromptRun,
  shape: Shape,
  { said, usualMs }: { readonly said: Expected; readonly usualMs: number },
): Promise<Asked> {
  const bytes = Buffer.alloc(8);
  random(bytes);
  const mark = bytes.toString('hex');
  const timeoutMs = Math.min(gateway.timeoutMs ?? Math.max(usualMs, leastTimeoutMs), deadlineMs ?? Number.POSITIVE_INFINITY);
  const begin = rehearsal.begin(mark, { index, scene, seed, expected: said });
  const { provider, key, headers } = gateway;
  const prompt = shape.body === null ? marked(text, mark) : markedFiller(shape.body.length, mark);
  const receiving = new ReceivedAnswer(live.now);
  const asked = { provider, prompt, key, headers, shape, isGateway: true, timeoutMs, signal: callSignal, received: receiving };
  const answer = await callProvider(live, asked);
  const elapsedMs = live.now() - begin;
  // Calls that the gateway makes after its answer are calls of this prompt as well.
  await pauseFor(settleMs, signal);
  const attempts = rehearsal.end(mark);
  const isEnded = isUnanswered(answer) && attempts.length > 0;
  // What the gateway does with a prompt that it was not let finish is no difference.
  if (isEnded) rehearsal.forget(mark);
  callSignal.throwIfAborted();
  signal.throwIfAborted();
  const received = receivedOf(receiving.answer?.(), {
    status: receiving.status,
    error: answer.error,
    time_to_first_token_ms: receiving.firstContentAt === null ? null : rounded(receiving.firstContentAt - begin),
  });
  const sentence = `had not answered after ${duration(timeoutMs)}, when the rehearsal ended the prompt`;
  const ended = isEnded ? { sentence, isDeadline: timeoutMs === deadlineMs } : null;
  return { mark, begin, attempts, answer, received, elapsedMs, problem: problemOf(answer, attempts, shape.stream), ended };
}

/** Whether the rehearsal has given up waiting for an answer. */
const isUnanswered = ({ condition, status_code: status }: CallResult) => condition === 'timeout' && status === null;

const servedBy = ({ answer, attempts }: Asked): string | null =>
  answer.condition === null ? (attempts.find(({ condition }) => condition === null)?.provider ?? null) : null;

/** How a prompt ended, beside what the chain says of it and how it ends there. */
export function outcomeOf(
  asked: Asked,
  shape: Shape,
  said: Expected,
  end: FinishedPrompt['end'],
): Outcome & { readonly fault: string | null } {
  const { attempts, answer, received, ended } = asked;
  const success = answer.condition === null;
  // Why a gateway fails where no provider does is not said by its calls.
  const isHealthy = said.attempts.every(({ condition }) => condition === null);
  const isCut = ended !== null && !(ended.isDeadline && end === 'deadline');
  const fault = isCut ? `the gateway ${ended.sentence}` : faultOfReceived(said, success, received, shape);
  const told = { fault, reason: isHealthy ? answer.error : null, ended: ended?.sentence ?? null };
  return { attempts, served_by: servedBy(asked), success, stream: shape.stream, ...told };
}

/** What the chain says about a finished prompt, and how it would end. */
interface Judged extends Pick<Compared, 'agrees' | 'tested'> {
  readonly said: Expected;
  readonly end: NonNullable<FinishedPrompt['end']>;
}

/** The finished prompt, with what the gateway did. */
export function finishedOf({ index, scene }: PromptRun, asked: Asked, shape: Shape, { said, end, ...compared }: Judged): FinishedPrompt {
  const { attempts, answer, received, elapsedMs } = asked;
  const success = answer.condition === null;
  const measured = {
    index,
    scenario: scene.name,
    success,
    served_by: servedBy(asked),
    latency_ms: rounded(elapsedMs),
    error: answer.condition,
  };
  const shown = { request: sentShape(shape), received, expected: said, ...compared };
  return { scene, end: success ? null : end, result: resultOf(measured, attempts, shown) };
}

const rounded = (ms: number) => Math.round(ms * 100) / 100;

type Measured = Pick<PromptResult, 'index' | 'scenario' | 'success' | 'served_by' | 'latency_ms' | 'error'>;
type Compared = Pick<PromptResult, 'request' | 'received' | 'expected' | 'agrees' | 'tested'>;

function resultOf(measured: Measured, attempts: Attempt[], compared: Compared): PromptResult {
  const { index, scenario, success, served_by, latency_ms, error } = measured;
  return {
    ...{ index, scenario, success, served_by },
    fallback_triggered: attempts.some(({ provider }) => provider !== attempts[0]!.provider),
    retries_used: attempts.filter(({ action }) => action === 'retry').length,
    total_wait_ms: rounded(attempts.reduce((sum, { wait_ms }) => sum + wait_ms, 0)),
    ...{ latency_ms, error, attempts },
    ...compared,
  };
}

/** Why a gateway is not usable, as a sentence; undefined for one that works, whatever its answer is. */
export function problemOf(
  { condition, status_code: status, error }: CallResult,
  attempts: readonly Attempt[],
  isStreamed: boolean,
): string | undefined {
  if (condition === null) return undefined;
  if (error === 'redirect_refused') return `The gateway answered with a redirect (HTTP ${status}), which is not followed.`;
  if (status === null && condition === 'connection_error') return `The gateway could not be called: ${error}.`;
  const passedOn = attempts.at(-1)?.condition;
  // A stream can only fail behind its status.
  if (status !== null && status < 300 && !isStreamed && passedOn !== 'invalid_response' && passedOn !== 'content_filter')
    return `The gateway's answer can't be used: ${error}.`;
  if (attempts.length > 0) return undefined;
  return status === null ? 'The gateway called nobody and did not answer in time.' : `The gateway called nobody and answered ${error}.`;
}
