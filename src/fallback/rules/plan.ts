import { type Fault, faultOf, invalidRequest } from '../../kit/errors.ts';
import { type ChainDefinition, type Condition, conditions } from '../model/chain.ts';
import { defaultPrompts, type InjectedFaultRequest, maxPrompts, type Preset, type TestRequest } from '../model/test.ts';
import type { Outage, TimelineRequest } from '../model/timeline.ts';
import { withoutNulls } from './chain.ts';
import { canFailWith, type FailureKind, isOfStream, isStatusOf, traitsOf, usualStatus } from './conditions.ts';
import { decide, type Engine, initialPosition } from './engine.ts';
import { seeded } from './random.ts';
import { defaulted, pathsTo, retriesOf, rulingsOf } from './reach.ts';
import { plainShape, type Shape, shapeFaults, shapesOf } from './shapes.ts';
import { conditionOfStream, type StreamFault, streamFaultOf, streamFaults, streamWaysOf } from './stream-faults.ts';
import { promptsOf, timelineFaults } from './timeline.ts';
import { listed } from './wording.ts';

/** The fields of a fault that are about streams alone. */
type OfStream = 'after_chunks' | 'stall_ms' | 'error_event' | 'malformed_chunk' | 'cut_tool_call' | 'no_final_event';

/** An injected failure of a plan: the provider by index; null fields do not restrict it, and without a condition it only delays. */
export interface InjectedFault extends Readonly<Required<Omit<InjectedFaultRequest, 'provider' | 'from' | 'to' | OfStream>>> {
  readonly provider: number;
  readonly from: number;
  readonly to: number;
  /** How a stream goes wrong; the fault is only one of streams then. */
  readonly inStream?: StreamFault;
}

/** The faults of one prompt. */
export interface Scene {
  readonly name: string;
  readonly faults: readonly InjectedFault[];
  /** Whether a sound chain serves the prompt; `either` if the plan is the caller's own. */
  readonly expects: 'served' | 'lost' | 'either';
  /** The shape of its request; undefined where none is sent. */
  readonly shape?: Shape;
}

/** The scenes of a test, the most informative first; prompts use them in turn. */
export type Plan = readonly Scene[];

/** The preset of a test; null if the request has faults or a timeline, and in `live` mode. */
export function presetOf({ mode, preset, faults, timeline }: TestRequest): Preset | null {
  if (mode === 'live' || faults || timeline) return null;
  return preset ?? 'coverage';
}

/**
 * The number of prompts of a test. By default it is the number of the given texts, else the number of scenes of the preset, so that
 * every scene is played and the test can pass. Without a preset all scenes are played equally often.
 */
export function promptCountOf(request: TestRequest, { length: scenes }: Pick<Plan, 'length'>): number {
  const { prompt_count, prompts, timeline } = request;
  if (timeline) return promptsOf(timeline);
  const usual = presetOf(request) === null ? scenes * Math.ceil(defaultPrompts / scenes) : Math.min(scenes, maxPrompts);
  return prompt_count ?? prompts?.length ?? usual;
}

/** The plan of a request, for each of its shapes. @throws ServiceError 400 with all faults of the plan */
export function planOf(engine: Engine, request: TestRequest): Plan {
  const faults = [...shapeFaults(request), ...requestFaults(engine.chain, request), ...timelineFaults(engine.chain, request)];
  if (faults.length > 0) throw invalidRequest(faults);
  if (request.timeline) return timelinePlan(request);
  if ((request.mode ?? 'simulate') === 'simulate') return scenesOf(engine, request, { stream: true, tools: [] });
  const plans = shapesOf(request).map((shape) => scenesOf(engine, request, shape).map((scene): Scene => ({ ...scene, shape })));
  const [first, second] = plans;
  const isBoth = plans.length === 2 && first![0]!.shape!.index === null;
  return isBoth ? alternating(first!, second!) : inTurn(plans);
}

/** The first scene of each shape, then the second of each: however many prompts there are, each shape has its share. */
function inTurn(plans: readonly Plan[]): Plan {
  const longest = Math.max(...plans.map(({ length }) => length));
  return Array.from({ length: longest }, (_, place) => plans.flatMap((plan) => plan[place] ?? [])).flat();
}

/** The scene of a timeline, for each of its shapes, which prompts use in turn. */
function timelinePlan(request: TestRequest): Plan {
  const scene: Scene = { name: 'the timeline', faults: [], expects: 'either' };
  return request.mode === 'rehearsal' ? shapesOf(request).map((shape) => ({ ...scene, shape })) : [scene];
}

/** The scenes with streamed answers, each followed by the scene of the same name with whole answers. */
function alternating(streamed: Plan, whole: Plan): Scene[] {
  const names = new Set(streamed.map(({ name }) => name));
  const twins = new Map(whole.map((scene) => [scene.name, scene]));
  return [
    ...streamed.flatMap((scene) => [scene, twins.get(scene.name)].filter((one) => one !== undefined)),
    ...whole.filter(({ name }) => !names.has(name)),
  ];
}

/** The scenes of a request with one shape. */
function scenesOf(engine: Engine, request: TestRequest, shape: Pick<Shape, 'stream' | 'tools'>): Plan {
  const suits = ({ inStream, condition }: InjectedFault) =>
    shape.stream || (inStream === undefined && (condition === null || !isOfStream(condition)));
  if (request.faults) {
    const faults = request.faults.map((fault) => injectedFault(engine.chain, fault)).filter(suits);
    return [{ name: 'the faults given', faults, expects: 'either' }];
  }
  const preset = presetOf(request);
  if (preset === null) return [healthy];
  if (preset === 'streams') return shape.stream ? [healthy, ...streamScenes(engine, shape), ...requestScenes(engine)] : [healthy];
  if (preset !== 'coverage' || request.mode !== 'rehearsal') return presetPlans[preset](engine);
  const plan = thorough(engine, coveragePlan(engine));
  // A gateway that is asked for whole answers has no streams that fail.
  if (!shape.stream) return plan.filter(({ faults }) => faults.every(suits));
  // Whether streams work at all is the first thing to know.
  return [healthy, ...plan.slice(0, -1).filter((scene) => !isReplaced(scene)), ...streamScenes(engine, shape, 1)];
}

/** Whether the ways in which the streams of the first provider go wrong are more of the same as a scene. */
const isReplaced = ({ faults: [fault, ...others] }: Scene): boolean =>
  others.length === 0 && fault?.provider === 0 && fault.times === null && fault.condition !== null && isOfStream(fault.condition);

/** The scene of a prompt. */
export const sceneOf = (plan: Plan, index: number): Scene => plan[index % plan.length]!;

/** A call of a prompt: the provider by index, and how many calls of it came before. */
interface PlannedCall {
  readonly provider: number;
  readonly nth: number;
  readonly prompt: number;
}

/**
 * The fault for a call, if any: the first fault of the scene that matches. A fault with a probability is drawn from the
 * seed and the call alone, so that a gateway meets the same faults as the simulation of its chain.
 */
export function faultAt(scene: Scene, call: PlannedCall, seed: number): InjectedFault | undefined {
  return scene.faults.find(({ provider, from, to, times, probability }, index) => {
    if (provider !== call.provider || call.prompt < from || call.prompt > to) return false;
    if (times !== null && call.nth >= times) return false;
    return probability === null || seeded(seed, call.prompt, provider, call.nth, index)() < probability;
  });
}

function requestFaults({ providers }: ChainDefinition, request: TestRequest): Fault[] {
  const { mode, preset, faults } = withoutNulls(request);
  const shapes = shapeFaults(request).length === 0 ? shapesOf(request) : [plainShape];
  const isStreamed = shapes.some(({ stream }) => stream);
  const hasTools = shapes.some(({ tools }) => tools.length > 0);
  const found: Fault[] = [];
  const fault = (field: string, rest: string) => found.push(faultOf(field, rest));
  const names = providers.map(({ name }) => name);
  const prompts = promptCountOf(request, shapes);
  if (mode === 'live' && faults) fault('faults', 'cannot be given in live mode, which injects nothing; use drill.');
  if (mode === 'live' && preset && preset !== 'healthy') fault('preset', 'cannot be given in live mode, which injects nothing; use drill.');
  if (faults && preset) fault('preset', 'cannot be given together with faults; each of them is a whole plan.');
  for (const [index, one] of (faults ?? []).entries()) {
    const at = `faults.${index}`;
    const { condition, status_code: status, latency_ms, from = 0, to = Number.POSITIVE_INFINITY } = withoutNulls(one);
    const isOfStreams = streamFaultOf(one) !== undefined;
    if (!names.includes(one.provider)) fault(`${at}.provider`, `names no provider of this chain; its providers are ${listed(names)}.`);
    if (!condition && latency_ms === undefined && !isOfStreams) fault(`${at}.condition`, 'is required where latency_ms is not given.');
    if (!condition && status) fault(`${at}.status_code`, 'has no meaning without a condition.');
    if (condition && status && !isStatusOf(condition, status))
      fault(`${at}.status_code`, `is not a status of ${condition}${statusHint(condition)}.`);
    const named = providers.find(({ name }) => name === one.provider);
    found.push(...streamFaults(one, at, named));
    if (one.cut_tool_call && !hasTools) fault(`${at}.cut_tool_call`, 'needs request.tools.');
    if (condition && named !== undefined && !canFailWith(named, condition))
      fault(`${at}.condition`, `can't be ${condition} at ${named.name}, which has no first_token_ms.`);
    if (condition && isOfStream(condition) && (mode === 'rehearsal' || mode === 'drill') && !isStreamed && !isOfStreams)
      fault(`${at}.condition`, `is ${condition}, which only a streamed answer can have; set stream.`);
    if (from > to) fault(`${at}.to`, 'must be at least from.');
    if (from >= prompts) fault(`${at}.from`, `must be at most ${prompts - 1}, the index of the last prompt.`);
  }
  return found;
}

function statusHint(condition: Condition): string {
  const statuses = traitsOf[condition].statuses.filter((status) => status !== null);
  if (statuses.length === 0) return ', which has none because no answer arrives';
  return statuses.length > 5 ? '' : `, which comes with ${listed(statuses.map(String))}`;
}

/** The failure of a timeline's outage. */
const outageFault = (provider: number, { condition, retry_after_ms }: Outage): InjectedFault => ({
  ...failing(provider, usual(condition)),
  retry_after_ms: retry_after_ms ?? null,
});

/** The failures of a timeline's outages, by provider and time in milliseconds. */
export function outagesOf(
  { providers }: ChainDefinition,
  { outages }: TimelineRequest,
): (provider: number, at: number) => InjectedFault | undefined {
  const faults = outages.map((outage) => {
    const provider = providers.findIndex(({ name }) => name === outage.provider);
    return { from: outage.from_s * 1000, to: outage.to_s * 1000, fault: outageFault(provider, outage) };
  });
  return (provider, at) => faults.find(({ fault, from, to }) => fault.provider === provider && at >= from && at < to)?.fault;
}

/** A fault without restrictions. */
const always = { retry_after_ms: null, latency_ms: null, times: null, from: 0, to: Number.POSITIVE_INFINITY, probability: null };

function injectedFault({ providers }: ChainDefinition, request: InjectedFaultRequest): InjectedFault {
  const { after_chunks, stall_ms, error_event, malformed_chunk, cut_tool_call, no_final_event, ...fault } = request;
  const provider = providers.findIndex(({ name }) => name === fault.provider);
  const inStream = streamFaultOf(request);
  if (inStream !== undefined) return streamFault(provider, providers[provider]!, inStream, withoutNulls(fault));
  const condition = fault.condition ?? null;
  const status_code = condition === null ? null : usualStatus(condition);
  return { ...always, status_code, ...withoutNulls(fault), condition, provider };
}

/** A fault of a stream, with the failure that it is by the limits of its provider. */
function streamFault(
  index: number,
  limits: ChainDefinition['providers'][number],
  inStream: StreamFault,
  restrictions: Partial<Pick<InjectedFault, 'times' | 'from' | 'to' | 'probability'>> = {},
): InjectedFault {
  const { times = null, from = 0, to = always.to, probability = null } = restrictions;
  const condition = conditionOfStream(inStream, limits);
  return {
    ...{ ...always, times, from, to, probability },
    latency_ms: condition === null ? inStream.stallMs : null,
    status_code: condition === null ? null : usualStatus(condition),
    ...{ condition, provider: index, inStream },
  };
}

/** A scene that a sound chain serves. */
const served = (name: string, faults: readonly InjectedFault[]): Scene => ({ name, faults, expects: 'served' });

/** A scene that a sound chain serves, unless its failures leave no provider: then what follows the last one is for its rules to say. */
function servedByRest({ chain: { providers } }: Engine, name: string, faults: readonly InjectedFault[]): Scene {
  const isEach =
    providers.length > 1 && providers.every((_, index) => faults.some(({ provider, times }) => provider === index && times === null));
  return { ...served(name, faults), ...(isEach && { expects: 'either' }) };
}
const healthy = served('healthy', []);

/** A fault: the provider always fails in one way, or the first `times` calls. */
const failing = (provider: number, { condition, status_code }: FailureKind, times: number | null = null): InjectedFault => ({
  ...always,
  condition,
  status_code,
  provider,
  times,
});
const usual = (condition: Condition): FailureKind => ({ condition, status_code: usualStatus(condition) });
const down = (providers: readonly number[]) => providers.map((provider) => failing(provider, usual('connection_error')));
const first = (count: number) => Array.from({ length: count }, (_, provider) => provider);

const presetPlans: Readonly<Record<Exclude<Preset, 'streams'>, (engine: Engine) => Plan>> = {
  coverage: coveragePlan,
  healthy: () => [healthy],
  primary_down: ({ chain }) =>
    (['connection_error', 'server_error', 'timeout'] as const).map((condition) =>
      served(`${chain.providers[0]!.name} is down: ${condition}`, [failing(0, usual(condition))]),
    ),
  cascade(engine) {
    if (engine.chain.providers.length === 1) return [served('the only provider is down', down([0]))];
    const order = orderWhenDown(engine);
    const counts = first(order.length - 1).map((provider) => order.length - 1 - provider);
    return counts.map((count) =>
      served(`the first ${count === 1 ? 'provider is' : `${count} providers are`} down`, down(order.slice(0, count))),
    );
  },
  flap: ({ chain }) => [
    served(`${chain.providers[0]!.name} is down for a while`, down([0])),
    served(`${chain.providers[0]!.name} fails once`, [failing(0, usual('server_error'), 1)]),
    served(`${chain.providers[0]!.name} is up again`, []),
  ],
  blackout: ({ chain: { providers } }) => [{ name: 'every provider is down', faults: down(first(providers.length)), expects: 'lost' }],
};

/** The streams of providers, by default of all, each going wrong in every way, and their refusals as an answer. */
function streamScenes(engine: Engine, { tools }: Pick<Shape, 'tools'>, providers?: number): Plan {
  return atEach(
    engine,
    (provider, index, path) => {
      const refusal = { name: 'a refusal as an answer', fault: failing(index, { condition: 'content_filter', status_code: 200 }) };
      const ways = streamWaysOf(provider, tools.length > 0).map(({ name, fault }) => ({
        name,
        fault: streamFault(index, provider, fault),
      }));
      return [...ways, refusal].map(({ name, fault }) => servedByRest(engine, `stream of ${provider.name}: ${name}`, [...path, fault]));
    },
    providers,
  );
}

/** The requests that a provider refuses for its own reasons. */
const requestScenes = (engine: Engine): Plan =>
  atEach(engine, ({ name }, index, path) =>
    (['model_not_found', 'unsupported_request'] as const).map((condition) =>
      servedByRest(engine, `${condition} at ${name}, lasting`, [...path, failing(index, usual(condition))]),
    ),
  );

/** Scenes of the first providers that a prompt can reach, each with the failures before it. */
function atEach(
  engine: Engine,
  scenesOf: (provider: ChainDefinition['providers'][number], index: number, path: readonly InjectedFault[]) => Plan,
  providers?: number,
): Plan {
  const paths = pathsTo(engine);
  return engine.chain.providers.slice(0, providers).flatMap((provider, index) => {
    const path = paths[index]?.failures.map((found) => failing(found.provider, found));
    return path === undefined ? [] : scenesOf(provider, index, path);
  });
}

/** The providers in the order in which a prompt calls them if all are down. */
function orderWhenDown(engine: Engine): number[] {
  if (engine.to.every((to) => to === null)) return [...engine.order];
  const position = initialPosition(engine);
  const order = [position.provider];
  const inputs = { random: () => 0, elapsed_ms: 0, deadline_ms: null };
  for (;;) {
    const { end } = decide(engine, position, { ...usual('connection_error'), retry_after_ms: null }, inputs);
    if (end !== null) return order;
    if (position.provider !== order.at(-1)) order.push(position.provider);
  }
}

/** A plan that exercises every rule that can apply, the defaults, and the last provider. */
function coveragePlan(engine: Engine): Plan {
  const { providers } = engine.chain;
  const rulings = rulingsOf(engine);
  const paths = pathsTo(engine, rulings).map((way) => way?.failures.map((found) => failing(found.provider, found)));
  const scenes: Scene[] = [];
  const last = providers.length - 1;
  const path = last > 0 ? paths[last] : undefined;
  // By a `to`, a prompt can skip providers.
  if (path !== undefined)
    scenes.push(served(path.length === last ? `all but ${providers[last]!.name} down` : `${providers[last]!.name} answers`, path));
  const recovering: Scene[] = [];
  for (const rule of engine.chain.fallback_rules.keys()) {
    const provider = rulings.findIndex((list, index) => paths[index] !== undefined && list.some((found) => found.rule === rule));
    const found = rulings[provider]?.find((one) => one.rule === rule);
    if (found === undefined) continue;
    const name = `${labelOf(found)} at ${providers[provider]!.name}`;
    const path = paths[provider]!;
    scenes.push(servedByRest(engine, `${name}, lasting`, [...path, failing(provider, found)]));
    const retries = retriesOf(engine, found.rule);
    if (retries > 0) recovering.push(served(`${name}, recovering`, [...path, failing(provider, found, retries)]));
  }
  const byDefault = defaulted(engine).sort(
    (one, other) => Number(traitsOf[one].byDefault === 'fail') - Number(traitsOf[other].byDefault === 'fail'),
  );
  const defaultCase = byDefault
    .map((condition) => rulings[0]!.find((found) => found.condition === condition && found.rule === null))
    .find((found) => found !== undefined);
  if (defaultCase !== undefined)
    scenes.push(served(`${labelOf(defaultCase)} at ${providers[0]!.name}, without a rule`, [failing(0, defaultCase)]));
  return [...scenes, ...recovering, healthy];
}

/**
 * The plan with a scene for each condition of the first provider. What a chain decides by one rule, or by default, a gateway may
 * decide otherwise for some of its failures.
 */
function thorough({ chain: { providers } }: Engine, plan: Plan): Plan {
  const isTried = (condition: Condition) =>
    plan.some(({ faults: [fault, ...others] }) => others.length === 0 && isLasting(fault) && fault?.condition === condition);
  const isLasting = (fault: InjectedFault | undefined) => fault?.provider === 0 && fault.times === null;
  const others = conditions
    .filter((condition) => canFailWith(providers[0]!, condition) && !isTried(condition))
    .map((condition) => served(`${condition} at ${providers[0]!.name}, lasting`, [failing(0, usual(condition))]));
  return [...plan.slice(0, -1), ...others, ...plan.slice(-1)];
}

const labelOf = ({ condition, status_code }: FailureKind) =>
  status_code === null || status_code === usualStatus(condition) ? condition : `${condition} (${status_code})`;
