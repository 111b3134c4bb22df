import type { ChainDefinition } from '../src/fallback/model/chain.ts';
import { concerns, type Finding } from '../src/fallback/model/finding.ts';
import type { Endpoint } from '../src/fallback/model/request.ts';
import { fakeReaction } from '../src/fallback/providers/fake.ts';
import type { FailureKind } from '../src/fallback/rules/conditions.ts';
import { createEngine } from '../src/fallback/rules/engine.ts';
import { pathsTo } from '../src/fallback/rules/reach.ts';
import { type Apart, agreesAsDrawn } from '../src/fallback/rules/rehearsal.ts';
import { streamWaysOf } from '../src/fallback/rules/stream-faults.ts';
import { simulated } from './simulation.ts';

/** What a fake provider answers; `timeout` and `reset` are no answer. */
export type Refusal = { status: number; text: string; then?: 'end' | 'cut' | 'silence' } | 'timeout' | 'reset';

const refuse = (status: number, code: string, message = 'It failed.'): Refusal => ({
  status,
  text: JSON.stringify({ error: { message, type: status === 400 ? 'invalid_request_error' : code, code } }),
});

/** Refusals of Anthropic, by those of OpenAI's form. */
const asAnthropic = (refusal: Refusal): Refusal => {
  if (typeof refusal === 'string' || refusal.status < 400) return refusal;
  const { code } = (JSON.parse(refusal.text) as { error: { code: string } }).error;
  const words: Record<string, [string, string]> = {
    context_length_exceeded: ['invalid_request_error', 'prompt is too long: 210000 tokens > 200000 maximum'],
    content_policy_violation: ['invalid_request_error', 'Output blocked by content filtering policy'],
  };
  const [type, message] = words[code] ?? [code, 'It failed.'];
  return { status: refusal.status, text: JSON.stringify({ type: 'error', error: { type, message } }) };
};

/** The failures that are tried, each with what an OpenAI-compatible provider sends. */
export const failures: readonly Way[] = [
  { condition: 'rate_limit', status_code: 429, refusal: refuse(429, 'rate_limit_exceeded') },
  { condition: 'quota_exceeded', status_code: 429, refusal: refuse(429, 'insufficient_quota') },
  { condition: 'quota_exceeded', status_code: 402, refusal: refuse(402, 'payment_required') },
  { condition: 'timeout', status_code: null, refusal: 'timeout' },
  { condition: 'timeout', status_code: 504, refusal: refuse(504, 'timeout') },
  { condition: 'server_error', status_code: 500, refusal: refuse(500, 'server_error') },
  { condition: 'server_error', status_code: 503, refusal: refuse(503, 'unavailable') },
  { condition: 'server_error', status_code: 520, refusal: refuse(520, 'unknown') },
  { condition: 'server_error', status_code: 529, refusal: refuse(529, 'overloaded_error') },
  { condition: 'connection_error', status_code: null, refusal: 'reset' },
  { condition: 'auth_error', status_code: 401, refusal: refuse(401, 'invalid_api_key') },
  { condition: 'auth_error', status_code: 403, refusal: refuse(403, 'forbidden') },
  {
    condition: 'context_length',
    status_code: 400,
    refusal: refuse(400, 'context_length_exceeded', "This model's maximum context length is 8192 tokens."),
  },
  { condition: 'content_filter', status_code: 400, refusal: refuse(400, 'content_policy_violation', 'The request was rejected.') },
  { condition: 'invalid_request', status_code: 400, refusal: refuse(400, 'invalid_value') },
  { condition: 'model_not_found', status_code: 404, refusal: refuse(404, 'model_not_found') },
  { condition: 'invalid_request', status_code: 404, refusal: refuse(404, 'not_found') },
  { condition: 'unsupported_request', status_code: 400, refusal: refuse(400, 'unsupported_parameter') },
  { condition: 'invalid_request', status_code: 409, refusal: refuse(409, 'conflict') },
  { condition: 'invalid_request', status_code: 415, refusal: refuse(415, 'unsupported') },
  { condition: 'invalid_request', status_code: 422, refusal: refuse(422, 'unprocessable') },
  { condition: 'invalid_response', status_code: 200, refusal: { status: 200, text: '{"id": "c1", "choices": [' } },
];

/** A failure that is tried; of a stream that goes wrong, what each API sends. */
interface Way extends FailureKind {
  readonly refusal: Refusal;
  readonly inStream?: (endpoint: Endpoint) => Refusal;
}

const asked = { kind: 'openai', provider: 'p', model: 'm', stream: true } as const;
/** A tool that the fake providers call. */
const called = { name: 'look_up', arguments: '{"name": "Ada Lovelace", "year": 1843}' };

/** The ways in which streams go wrong, and a refusal as an answer; those of silence only where all models have a limit for it. */
export function streamFailures(hasTools: boolean, isLimited: boolean): readonly Way[] {
  const limit = isLimited ? 1_000 : null;
  const ways = streamWaysOf({ first_token_ms: limit, idle_ms: limit, timeout_ms: 60_000 }, hasTools);
  const refusal = { condition: 'content_filter' as const, status_code: 200, inStream: undefined };
  const faults = [
    ...ways.map(({ condition, fault }) => ({ condition, status_code: condition === 'first_token_timeout' ? null : 200, inStream: fault })),
    refusal,
  ];
  return faults.map(({ condition, status_code, inStream }): Way => {
    const sent = (endpoint: Endpoint): Refusal => {
      const fault = { condition, status_code, retry_after_ms: null, ...(inStream && { inStream }) };
      const reaction = fakeReaction({ ...asked, endpoint, tool: hasTools ? called : null }, fault);
      if (typeof reaction === 'string') throw new Error(`A stream has a head: ${reaction}`);
      return { status: 200, text: reaction.body, then: reaction.later === undefined ? reaction.then : 'silence' };
    };
    return { condition, status_code, refusal: sent('chat'), inStream: sent };
  });
}

/** The streams of healthy providers, by API. */
export function healthyStreams(hasTools: boolean): Record<'chat' | 'messages', string> {
  const of = (endpoint: Endpoint) => fakeReaction({ ...asked, endpoint, tool: hasTools ? called : null }, undefined) as { body: string };
  return { chat: of('chat').body, messages: of('messages').body };
}

/** What a program did in a scene: the hosts that it called, in order, and its answer. */
export interface Played {
  calls: string[];
  /** The longest silence of each call in seconds, where the program runs in a client that tells it. */
  limits?: (number | null)[];
  answer: string | null;
  error: string | null;
}

/** A program that plays scenes with fake providers. */
export interface ScenePlayer {
  /** Plays scenes: the refusals of the hosts that fail. `fresh` plays them one after the other, each with a clean memory of failures. */
  play(file: {
    config: string;
    group: string;
    fresh: boolean;
    scenes: Readonly<Record<string, Refusal>>[];
    /** The answers of healthy providers by API, if the scenes are streamed. */
    streams?: Readonly<Record<'chat' | 'messages', string>>;
  }): Promise<Played[]>;
}

/** A provider of the chain and the model of the file behind it. */
export interface Model {
  host: string;
  /** What the models that stand for one another have in common: the program draws one of them. */
  pool: string;
}

/** An imported file to judge. */
export interface Judged {
  name: string;
  chain: ChainDefinition;
  findings: readonly Finding[];
  /** By the names of providers. */
  models: ReadonlyMap<string, Model>;
  /** The providers of which the program calls one for each prompt. */
  apart?: Apart | undefined;
}

/** What fails in a scene, by the names of providers. The others answer. */
type Down = ReadonlyMap<string, Way>;

/** The providers that the chain calls, in order, and whether one answers. */
async function callsOf(chain: ChainDefinition, down: Down) {
  const faults = chain.providers.flatMap(({ name }, provider) => {
    const failing = down.get(name);
    return failing === undefined ? [] : [{ provider, condition: failing.condition, status_code: failing.status_code, times: null }];
  });
  const { attempts, success } = await simulated(chain, faults);
  return { calls: attempts.map(({ provider }) => provider), isServed: success };
}

/** Each provider down in each way, alone and where earlier failures lead to it, and all of them down. */
function scenesOf(chain: ChainDefinition, tried: readonly Way[]): Down[] {
  const names = chain.providers.map(({ name }) => name);
  const leading = pathsTo(createEngine(chain)).map((way) => {
    const found = way?.failures.map(({ provider, condition, status_code }): [string, Way] => {
      const alike = [...failures, ...streamFailures(false, true)].filter((failing) => failing.condition === condition);
      return [names[provider]!, alike.find((failing) => failing.status_code === status_code) ?? alike[0]!];
    });
    // A reset connection may take other calls of a pool with it, so it is only tried alone.
    return found?.some(([, { refusal }]) => refusal === 'reset') ? undefined : found;
  });
  return tried.flatMap((failing) => [
    ...names.map((name) => new Map([[name, failing]])),
    ...names.flatMap((name, index) => (leading[index]?.length ? [new Map([...leading[index], [name, failing] as const])] : [])),
    new Map(names.map((name) => [name, failing])),
  ]);
}

/** How many scenes were played, how many findings excuse, and a sentence for each difference without one. */
interface Judgement {
  scenes: number;
  excused: number;
  unexplained: string[];
}

/** What is played with a file; with `streams`, answers are streamed, and these are those of healthy providers. */
interface Judging {
  config: string;
  group: string;
  fresh: boolean;
  tried?: readonly Way[];
  streams?: Readonly<Record<'chat' | 'messages', string>>;
}

/**
 * Compares the program with the chain. A finding excuses a difference if it names the provider after whose failure the calls
 * part, that failure, and its status and that of streams if it is not about all. That one of several targets is drawn excuses what
 * the chain does without the others, as in a rehearsal.
 */
export async function judge(
  program: ScenePlayer,
  { name, chain, findings, models, apart = new Map() }: Judged,
  { config, group, fresh, tried = failures, streams }: Judging,
): Promise<Judgement> {
  const scenes = scenesOf(chain, tried);
  const kinds = new Map(chain.providers.map((one) => [one.name, one.provider]));
  const refusals = (down: Down) =>
    Object.fromEntries(
      [...down].map(([one, { refusal, inStream }]) => {
        const isAnthropic = kinds.get(one) === 'anthropic';
        const ofStream = inStream?.(isAnthropic ? 'messages' : 'chat');
        return [models.get(one)!.host, ofStream ?? (isAnthropic ? asAnthropic(refusal) : refusal)];
      }),
    );
  const played = await program.play({ config, group, fresh, scenes: scenes.map(refusals), ...(streams && { streams }) });
  const byHost = new Map([...models].map(([one, { host }]) => [host, one]));
  const poolOf = (one: string | undefined) => (one === undefined ? undefined : (models.get(one)?.pool ?? one));
  const sizeOf = (pool: string) => [...models.values()].filter((model) => model.pool === pool).length;
  const engine = createEngine(chain);
  const judgement: Judgement = { scenes: scenes.length, excused: 0, unexplained: [] };
  for (const [index, down] of scenes.entries()) {
    const { calls: called, answer, error } = played[index]!;
    const theirs = called.map((host) => byHost.get(host) ?? host);
    const ours = await callsOf(chain, down);
    const isServed = answer !== null && answer !== '';
    const length = Math.max(ours.calls.length, theirs.length);
    const parted = Array.from({ length }, (_, at) => at).find((at) => poolOf(ours.calls[at]) !== poolOf(theirs[at]));
    if (parted === undefined && isServed === ours.isServed) continue;
    // Where only some models of a pool fail, a draw of a healthy one instead of one that fails agrees, and the other way round.
    const drawn = theirs.at(-1);
    const isDraw = (parted ?? length) === theirs.length && sizeOf(poolOf(drawn)!) > 1 && isServed !== down.has(drawn!);
    if (isDraw && isServed === down.has(ours.calls[theirs.length - 1]!)) continue;
    const last = Math.max((parted ?? length) - 1, 0);
    const attempts = theirs.map((provider) => ({ provider, condition: null, status_code: 200, ...down.get(provider) }));
    const asDrawn = agreesAsDrawn(engine, { attempts, served_by: isServed ? drawn! : null, success: isServed }, apart);
    const isExcused = [ours.calls[last], theirs[last]].some((provider) => {
      const failing = provider === undefined ? undefined : down.get(provider);
      return (
        failing !== undefined &&
        findings.some(
          (finding) =>
            finding.loss &&
            (finding.kind !== 'one_target' || asDrawn) &&
            concerns(finding, { ...failing, provider: provider!, stream: streams !== undefined }),
        )
      );
    });
    if (isExcused) {
      judgement.excused += 1;
      continue;
    }
    const what = [...down].map(([one, { condition, status_code }]) => `${one} down with ${condition} ${status_code}`).join(', ');
    judgement.unexplained.push(
      `${name}: ${what}: it called ${theirs.join(' ')} (${error ?? 'answered'}), the chain ${ours.calls.join(' ')}`,
    );
  }
  return judgement;
}
