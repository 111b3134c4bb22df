import type { Clock } from '../../kit/clock.ts';
import { invalid } from '../../kit/errors.ts';
import { type NewId, type RandomSource, randomFraction } from '../../kit/id.ts';
import type { Chain, ChainDefinition } from '../model/chain.ts';
import { type Finding, isOfCooldowns } from '../model/finding.ts';
import { type InjectedFaultRequest, type Mode, maxCalls, maxPrompts, maxSeed, type TestRequest } from '../model/test.ts';
import type { PromptRun } from '../providers/executor.ts';
import { assumptions, instantSimulation } from '../providers/simulate.ts';
import { TimelineRun } from '../providers/timeline.ts';
import { definitionOf } from '../rules/chain.ts';
import { isOfStream } from '../rules/conditions.ts';
import { createEngine, type Engine } from '../rules/engine.ts';
import { type Plan, planOf, presetOf, promptCountOf } from '../rules/plan.ts';
import { worstCase } from '../rules/reach.ts';
import { type Groups, withNativeStatuses } from '../rules/rehearsal.ts';
import { streamFaultOf } from '../rules/stream-faults.ts';
import { findingsOfExport, leftOutSentence, requireRehearsable } from '../rules/targets/rehearsal.ts';
import { listed } from '../rules/wording.ts';
import { formatOf, gatewayRun, prepareGateway } from './gateway.ts';
import { type LiveDependencies, requireLive, transportFor } from './live.ts';
import { maxOpenPrompts, OutageRun } from './outage-run.ts';
import { TestRecord } from './record.ts';
import { Rehearsal } from './rehearsal.ts';
import { fakeBase, type RehearsalTokens } from './rehearsal-tokens.ts';
import type { Run } from './runs.ts';

/** The prompt of a test whose request names none. */
const defaultPrompt = 'Reply with the single word: ready';

/** How many prompts of a test with real calls run at a time. */
const realAtOnce = 4;

export interface PrepareDependencies {
  clock: Clock;
  newId: NewId;
  random: RandomSource;
  live: LiveDependencies;
  tokens: Pick<RehearsalTokens, 'of'>;
  /** The origin at which gateways reach this service; undefined for that of each request. */
  publicUrl: string | undefined;
  rehearsal: RehearsalOptions;
}

/** How rehearsals run. */
export interface RehearsalOptions {
  /** How many prompts run at a time. */
  atOnce: number;
  /** Whether the gateway remembers the failures of earlier prompts; then none is sent again. */
  keepsState?: boolean;
  /** The balanced groups of the gateway, whose providers may stand for one another. */
  groups: Groups;
  /** How often a provider is drawn in its group, in proportion to the others; 1 if it is not listed. */
  weights?: ReadonlyMap<string, number>;
  /** How long the gateway leaves out providers by rules that the chain does not have, in milliseconds; undefined if it never does. */
  ownCooldownMs?: () => number | undefined;
  /** The configuration for a header of the gateway instead of the chain's export; undefined for the export. */
  config?: () => unknown;
}

/** A rehearsal that is about to run, and the token of its fake providers. */
export interface Rehearsing {
  readonly token: string;
  readonly rehearsal: Rehearsal;
}

/** What the mode of a test decides about its run. */
interface ModeOptions {
  readonly chain: ChainDefinition;
  readonly plan: Plan;
  readonly engine: Engine;
  readonly run: Pick<Run, 'transport' | 'atOnce' | 'play'>;
  readonly assumptions: string[];
  /** What the gateway does otherwise than the chain; undefined for what the import found. */
  readonly findings?: readonly Finding[];
  readonly rehearsing?: Rehearsing;
  readonly timeline?: OutageRun;
}

/**
 * Validates a request and prepares its run. Stores nothing, except for the chain's rehearsal token when it is first needed.
 * @param findings the findings of the import that made the chain
 * @param origin the origin by which the caller reached the service
 * @throws ServiceError 400 or 403
 */
export async function prepare(
  chain: Chain,
  findings: readonly Finding[],
  request: TestRequest,
  origin: string,
  parts: PrepareDependencies,
) {
  const { clock, newId, random } = parts;
  const mode = request.mode ?? 'simulate';
  const prepared =
    mode === 'rehearsal' ? await rehearsalParts(chain, request, origin, parts) : testParts(definitionOf(chain), request, mode, parts);
  const { engine, plan, rehearsing } = prepared;
  const count = promptCountOf(request, plan);
  const max_calls_per_prompt = requireFewCalls(engine, count);
  const now = clock();
  const seed = request.seed ?? Math.floor(randomFraction(random) * (maxSeed + 1));
  const deadlineMs = request.deadline_ms ?? null;
  const head = {
    id: newId(now),
    chain_id: chain.id,
    chain_version: chain.version,
    chain: prepared.chain,
    findings: (prepared.findings ?? findings).filter((finding) => finding.condition !== null || isOfCooldowns(finding)),
    mode,
    preset: presetOf(request),
    seed,
    prompt_count: count,
    deadline_ms: deadlineMs,
    started_at: now.toISOString(),
    assumptions: [...prepared.assumptions, ...idleFaults(request, plan), ...leftScenes(request, plan)],
  };
  const prompts = request.prompts ?? [defaultPrompt];
  const timeline = prepared.timeline ?? (request.timeline ? new TimelineRun(request.timeline) : undefined);
  const record = new TestRecord(head, { rehearsal: rehearsing?.rehearsal, timeline });
  const play = timeline && { play: (one: PromptRun) => timeline.play(one, prompts) };
  const run = { engine, plan, count, prompts, seed, deadlineMs, ...prepared.run, ...play };
  return { record, run, max_calls_per_prompt, rehearsing };
}

/** A sentence about faults of streams in a test with whole answers, which do nothing there. */
function idleFaults({ mode, faults }: TestRequest, plan: Plan): string[] {
  const isOfStreams = (fault: InjectedFaultRequest) =>
    streamFaultOf(fault) !== undefined || (fault.condition ? isOfStream(fault.condition) : false);
  const fields = (faults ?? []).flatMap((fault, index) => (isOfStreams(fault) ? [`faults.${index}`] : []));
  const hasWhole = (mode ?? 'simulate') !== 'simulate' && plan.some(({ shape }) => shape?.stream === false);
  return fields.length > 0 && hasWhole
    ? [`A whole answer has no parts, so that ${listed(fields)} mean nothing to the prompts without a stream.`]
    : [];
}

/** A sentence about the scenes of a preset for which a test has not enough prompts. */
function leftScenes(request: TestRequest, { length: scenes }: Plan): string[] {
  const isWhole = presetOf(request) === null || (request.prompt_count ?? request.prompts ?? null) !== null;
  return isWhole || scenes <= maxPrompts
    ? []
    : [
        `The scenes of all shapes are ${scenes}, and a test has at most ${maxPrompts} prompts: of each shape, only the first scenes are played.`,
      ];
}

function testParts(
  chain: ChainDefinition,
  request: TestRequest,
  mode: Exclude<Mode, 'rehearsal'>,
  { live }: PrepareDependencies,
): ModeOptions {
  if (request.gateway) throw invalid('gateway', 'gateway is only for the mode rehearsal.');
  const engine = createEngine(chain);
  const transport = transportFor(mode, chain, live);
  const isSimulated = mode === 'simulate';
  return {
    chain,
    engine,
    plan: planOf(engine, request),
    run: { transport, atOnce: isSimulated ? 1 : realAtOnce },
    assumptions: isSimulated ? [...assumptions] : [],
  };
}

async function rehearsalParts(stored: Chain, request: TestRequest, origin: string, parts: PrepareDependencies): Promise<ModeOptions> {
  const { live, tokens, publicUrl, random } = parts;
  requireLive('rehearsal', live);
  if (!request.gateway) throw invalid('gateway', 'gateway is required with the mode rehearsal.');
  const { chain, left } = requireRehearsable(definitionOf(stored));
  const engine = createEngine(chain);
  const plan = withNativeStatuses(planOf(engine, request), engine, (fault) => (request.faults?.[fault]?.status_code ?? null) !== null);
  const token = await tokens.of(stored.id);
  const gateway = await prepareGateway(request.gateway, chain, fakeBase(publicUrl ?? origin, token), {
    ...live,
    config: parts.rehearsal.config,
  });
  const { groups, weights, atOnce, keepsState = false } = parts.rehearsal;
  const timeline = request.timeline ?? undefined;
  const ownCooldownMs = parts.rehearsal.ownCooldownMs?.() ?? 0;
  const rehearsal = new Rehearsal(engine, live.now, { groups, ...(weights && { weights }), ...(timeline && { timeline }), ownCooldownMs });
  // A configuration is given if a file is rehearsed itself: then it is the imported file.
  const isOwn = parts.rehearsal.config?.() !== undefined;
  const exported = { chain, prefer: 'failover' as const, keepState: keepsState || timeline !== undefined };
  const format = formatOf(request.gateway);
  const findings = isOwn ? {} : { findings: format === undefined ? [] : findingsOfExport(format, exported) };
  const common = { chain, engine, plan, assumptions: left.map(leftOutSentence), rehearsing: { token, rehearsal }, ...findings };
  const toGateway = { gateway, rehearsal, live, random, keepsState };
  if (rehearsal.outages === undefined) return { ...common, run: { transport: instantSimulation, atOnce, play: gatewayRun(toGateway) } };
  const run = { transport: instantSimulation, atOnce: maxOpenPrompts };
  return { ...common, run, timeline: new OutageRun(toGateway, rehearsal.outages) };
}

/** The most calls for one prompt. @throws ServiceError 400 if all prompts could make too many */
function requireFewCalls(engine: Engine, prompts: number): number {
  const { attempts } = worstCase(engine);
  if (attempts * prompts <= maxCalls) return attempts;
  throw invalid(
    'prompt_count',
    `prompt_count ${prompts} allows up to ${attempts * prompts} calls, ${attempts} for each prompt, and a test may make at most ${maxCalls}; with this chain prompt_count can be at most ${Math.floor(maxCalls / attempts)}.`,
  );
}
