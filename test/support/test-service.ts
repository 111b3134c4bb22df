import { type ChainService, createChainService } from '../../src/fallback/service/chains.ts';
import { Rehearsals } from '../../src/fallback/service/rehearsal.ts';
import { createRehearsalTokens } from '../../src/fallback/service/rehearsal-tokens.ts';
import type { TestServiceDependencies } from '../../src/fallback/service/tests.ts';
import { createIds, systemRandom } from '../../src/kit/id.ts';
import { parseAllowList } from '../../src/kit/outgoing/addresses.ts';
import { createGuard } from '../../src/kit/outgoing/guard.ts';
import { Outgoing } from '../../src/kit/outgoing/outgoing.ts';
import { Turns } from '../../src/kit/turns.ts';
import { TestClock } from './service.ts';

const clock = new TestClock().read;
const newId = createIds();

/** The parts of a test service on a store, with a clock that stands still. It may only call providers on this machine. */
export function testServiceParts(
  store: TestServiceDependencies['store'],
  more: Partial<Omit<TestServiceDependencies, 'chains'>> = {},
  now: () => number = () => performance.now(),
): TestServiceDependencies & { chains: ChainService } {
  const outgoing = new Outgoing({ guard: createGuard({ allow: parseAllowList(['127.0.0.1']), plainHttp: true, setting: 'ALLOW' }) });
  return {
    store,
    chains: createChainService({ store, clock, newId, turns: new Turns() }),
    clock,
    newId,
    random: systemRandom,
    tokens: createRehearsalTokens(store, systemRandom),
    rehearsals: new Rehearsals(),
    publicUrl: undefined,
    rehearsal: { atOnce: 4, groups: new Map() },
    live: { allowed: true, outgoing, environment: {}, grants: [], clock, now, urlProblem: async () => undefined },
    retention: { perChain: 0, seconds: 0 },
    onError(error) {
      throw error;
    },
    ...more,
  };
}
