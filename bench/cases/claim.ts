import { join } from 'node:path';

import { packetOfBytes } from '../bodies.ts';
import type { LoadRequest } from '../load.ts';
import { figureOf } from '../report.ts';
import { compare, type Side } from '../rounds.ts';
import { connections, jsonHeaders, type MeasuredService, type Run } from '../run.ts';

/** POST /packets/{id}/claim. */
export const claimOf = (id: string): LoadRequest => ({
  method: 'POST',
  path: `/api/v1/packets/${id}/claim`,
  headers: jsonHeaders,
  body: JSON.stringify({ agent_id: 'resolver', agent_name: 'Resolver', framework: 'langgraph' }),
});

/** PATCH /packets/{id} to completed. */
export const completeOf = (id: string): LoadRequest => ({
  method: 'PATCH',
  path: `/api/v1/packets/${id}`,
  headers: jsonHeaders,
  body: JSON.stringify({ status: 'completed' }),
});

/** Rounds that use each packet of a list once. */
export function taking(
  run: Run,
  service: MeasuredService,
  ids: readonly string[],
  perRound: number,
  requestsOf: (id: string) => LoadRequest[],
): Side {
  return {
    program: service.program,
    run: (round) => {
      const batches = ids.slice(round * perRound, (round + 1) * perRound).map(requestsOf);
      return run.load({ url: service.url, connections, requests: batches.flat(), batchSize: batches[0]!.length });
    },
  };
}

/** Claiming, completing, and both in sequence, against the echo. */
export async function claim(run: Run): Promise<void> {
  const perRound = run.options.quick ? 5_000 : 20_000;
  const each = perRound * (run.rounds + 1);
  const databaseUrl = `sqlite://${join(run.folder, 'claim.db')}`;
  const ids = await run.fill(databaseUrl, 2 * each);
  const service = await run.startService(databaseUrl);
  const echo: LoadRequest = { method: 'POST', path: '/echo', headers: jsonHeaders, body: packetOfBytes(2048) };
  const ceiling: Side = { program: run.ceiling, run: () => run.again(run.ceilingUrl, [echo]) };
  const target = { better: 'more', required: 0.4, stretch: 0.5 } as const;

  const report = async (name: string, some: readonly string[], requestsOf: (id: string) => LoadRequest[]) => {
    const compared = await compare(run.rounds, ceiling, taking(run, service, some, perRound, requestsOf));
    run.report(figureOf(name, 'echo', compared, target));
  };
  const first = ids.slice(0, each);
  await report('claim', first, (id) => [claimOf(id)]);
  await report('complete', first, (id) => [completeOf(id)]);
  await report('claim, then complete', ids.slice(each), (id) => [claimOf(id), completeOf(id)]);
  await service.stop();
}
