import type { ChainDefinition } from '../src/fallback/model/chain.ts';
import type { Finding } from '../src/fallback/model/finding.ts';
import { runPrompt } from '../src/fallback/providers/executor.ts';
import { simulation } from '../src/fallback/providers/simulate.ts';
import type { Failing } from '../src/fallback/rules/conditions.ts';
import { createEngine } from '../src/fallback/rules/engine.ts';

/** What a fake provider answers; `timeout` and `reset` are no answer. */
export type Refusal = { status: number; text: string } | 'timeout' | 'reset';

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
export const failures: readonly (Failing & { refusal: Refusal })[] = [
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
  { condition: 'invalid_request', status_code: 404, refusal: refuse(404, 'model_not_found') },
  { condition: 'invalid_request', status_code: 409, refusal: refuse(409, 'conflict') },
  { condition: 'invalid_request', status_code: 415, refusal: refuse(415, 'unsupported') },
  { condition: 'invalid_request', status_code: 422, refusal: refuse(422, 'unprocessable') },
  { condition: 'invalid_response', status_code: 200, refusal: { status: 200, text: '{"id": "c1", "choices": [' } },
];

/** What a program did in a scene: the hosts that it called, in order, and its answer. */
export interface Played {
  calls: string[];
  answer: string | null;
  error: string | null;
}

/** A program that plays scenes with fake providers. */
export interface ScenePlayer {
  /** Plays scenes: the refusals of the hosts that fail. `fresh` plays them one after the other, each with a clean memory of failures. */
  play(file: { config: string; group: string; fresh: boolean; scenes: Readonly<Record<string, Refusal>>[] }): Promise<Played[]>;
}

/** A provider of the chain and the model of the file behind it. */
export interface Model {
  host: string;
  /** The models that stand for one another: those that the program draws from. */
  place: string;
}

/** An imported file to judge. */
export interface Judged {
  name: string;
  chain: ChainDefinition;
  findings: readonly Finding[];
  /** By the names of providers. */
  models: ReadonlyMap<string, Model>;
}

/** The providers that the chain calls, in order, and whether one answers. */
async function simulated(chain: ChainDefinition, down: ReadonlySet<string>, { condition, status_code }: Failing) {
  const fault = { condition, status_code, retry_after_ms: null, latency_ms: null, times: null, from: 0, to: 1, probability: null };
  const faults = chain.providers.flatMap(({ name }, provider) => (down.has(name) ? [{ ...fault, provider }] : []));
  const { signal } = new AbortController();
  const run = { engine: createEngine(chain), transport: simulation, scene: { name: 'judged', faults, expects: 'either' as const } };
  const { result } = await runPrompt({ ...run, index: 0, prompt: 'p', seed: 1, deadlineMs: null, signal, callSignal: signal });
  return { calls: result.attempts.map(({ provider }) => provider), isServed: result.success };
}

/** How many scenes were played, how many findings excuse, and a sentence for each difference without one. */
export interface Judgement {
  scenes: number;
  excused: number;
  unexplained: string[];
}

/** Compares the program with the chain: each model down in each way, and all of them. */
export async function judge(
  program: ScenePlayer,
  { name, chain, findings, models }: Judged,
  { config, group, fresh, tried = failures }: { config: string; group: string; fresh: boolean; tried?: typeof failures },
): Promise<Judgement> {
  const names = chain.providers.map((provider) => provider.name);
  const scenes = tried.flatMap((failing) => [
    ...names.map((one) => ({ failing, down: new Set([one]) })),
    { failing, down: new Set(names) },
  ]);
  const played = await program.play({
    config,
    group,
    fresh,
    scenes: scenes.map(({ failing: { refusal }, down }) =>
      Object.fromEntries(
        chain.providers.flatMap(({ name: one, provider }) =>
          down.has(one) ? [[models.get(one)!.host, provider === 'anthropic' ? asAnthropic(refusal) : refusal]] : [],
        ),
      ),
    ),
  });
  const placeOf = new Map([...models.values()].map(({ host, place }) => [host, place]));
  const members = (place: string) => [...models.values()].filter((model) => model.place === place).length;
  const judgement: Judgement = { scenes: scenes.length, excused: 0, unexplained: [] };
  for (const [index, { failing, down }] of scenes.entries()) {
    const theirs = played[index]!;
    const ours = await simulated(chain, down, failing);
    const expected = ours.calls.map((one) => models.get(one)!.place);
    const actual = theirs.calls.map((host) => placeOf.get(host) ?? host);
    const isServed = theirs.answer !== null && theirs.answer !== '';
    if (String(expected) === String(actual) && isServed === ours.isServed) continue;
    // Where a part of a group fails, a draw that begins at a healthy model agrees.
    const [only] = down;
    const model = models.get(only!)!;
    if (down.size === 1 && members(model.place) > 1 && isServed && !theirs.calls.includes(model.host)) continue;
    const { condition } = failing;
    if (
      findings.some((finding) => finding.loss && finding.condition === condition && finding.provider !== null && down.has(finding.provider))
    ) {
      judgement.excused += 1;
      continue;
    }
    const what = `${[...down].join(', ')} down with ${condition} ${failing.status_code}`;
    judgement.unexplained.push(
      `${name}: ${what}: it called ${theirs.calls.join(' ')} (${theirs.error ?? 'answered'}), the chain ${ours.calls.join(' ')}`,
    );
  }
  return judgement;
}
