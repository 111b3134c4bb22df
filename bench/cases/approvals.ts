import { join } from 'node:path';

import { packetOfBytes } from '../bodies.ts';
import type { LoadRequest } from '../load.ts';
import { requireGood } from '../rounds.ts';
import { connections, jsonHeaders, type Run } from '../run.ts';
import { Tenant } from '../tenant.ts';

/** How many requests a round has, and how many rounds there are after one that warms up. */
const perRound = 1000;
const rounds = 10;

const agent = { id: 'refunds', name: 'Refund agent', framework: 'langgraph' };
const reason = 'The customer was charged twice.';
const tags = ['refund', 'customer'];

/** What a policy approves by itself, after a rule that does not fit. */
const policy = {
  match: { agents: ['refund*'], tools: ['refund'] },
  rules: [
    {
      when: { properties: { arguments: { properties: { amount: { type: 'number', minimum: 10_000 } }, required: ['amount'] } } },
      then: { ask: [{ from: ['dana'] }] },
    },
    {
      when: { properties: { arguments: { properties: { amount: { type: 'number', minimum: 0, maximum: 50 } }, required: ['amount'] } } },
      then: { approve: 'up to 50' },
    },
  ],
};

/**
 * The processor time of `POST /approvals` for an action that a policy approves, beside that of a create: of a packet that says the same,
 * and of one of 2 KB. All take turns on one service with a database on disk; the least round of each counts, since what else the machine
 * does can only add.
 */
export async function approvals(run: Run): Promise<void> {
  const service = await run.startService(`sqlite://${join(run.folder, 'approvals.db')}`);
  try {
    const admin = new Tenant(service.url);
    // A policy approves by itself only for an agent that the key is bound to.
    const { key } = await admin.post('/api/v1/keys', { name: 'agent', scopes: ['work'], agents: [agent.id] });
    await admin.send('/api/v1/policies/refunds', policy, { method: 'PUT' });
    const headers = { ...jsonHeaders, 'x-api-key': key };
    const request = (path: string, body: unknown): LoadRequest => ({ method: 'POST', path, headers, body: JSON.stringify(body) });
    const approval = (call_id: object) =>
      request('/api/v1/approvals', {
        ...{ agent, reason, tags },
        action: { tool: 'refund', arguments: { order: 'ORD-4711', amount: 20, currency: 'EUR' }, ...call_id },
      });
    const metadata = { source_agent: agent, target_agent: { id: agent.id, name: agent.name }, tags };
    const same = { metadata, context: { summary: `Run refund? ${reason}` } };
    const large = { ...JSON.parse(packetOfBytes(2048)), metadata: same.metadata };
    const sides: readonly [string, (round: number) => LoadRequest[]][] = [
      ['create, as much text', () => [request('/api/v1/packets', same)]],
      ['create, 2 KB', () => [request('/api/v1/packets', large)]],
      ['approval', () => [approval({})]],
      [
        'approval with a call id',
        (round) => Array.from({ length: perRound }, (_, index) => approval({ call_id: `call-${round}-${index}` })),
      ],
    ];
    const found = JSON.parse((await admin.send('/api/v1/approvals', JSON.parse(approval({}).body as string), { headers })).toString());
    if (found.hitl.decision?.policy?.name !== 'refunds') throw new Error('The policy did not decide.');
    const least = sides.map(() => Number.POSITIVE_INFINITY);
    for (let round = 0; round <= rounds; round += 1) {
      for (const [index, [, requestsOf]] of sides.entries()) {
        const requests = requestsOf(round);
        const before = await service.program.cpu();
        requireGood(await run.burst({ url: service.url, connections, requests, count: perRound }));
        const cpu = ((await service.program.cpu()) - before) / perRound;
        if (round > 0) least[index] = Math.min(least[index]!, cpu);
      }
    }
    for (const [index, [name]] of sides.entries()) {
      const value = least[index]! / least[0]!;
      const target = index < 2 ? undefined : ({ better: 'less', required: 2 } as const);
      run.report({ name, cpu: least[index]!, against: sides[0]![0], value, target });
    }
  } finally {
    await service.stop();
  }
}
