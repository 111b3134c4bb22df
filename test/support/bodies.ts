import type { routes } from '../../src/handoff/model/api.ts';
import { createExample } from '../../src/handoff/model/examples.ts';
import { unknownId } from './life.ts';

/** A create request with every part. */
export const whole = {
  ...createExample,
  context: {
    ...createExample.context,
    conversation_state: [{ role: 'user', content: 'I was charged twice.', timestamp: '2026-03-01T09:00:00Z' }],
    custom: { thread: 'abc' },
  },
  decisions: [{ id: 'd1', decision: 'Refund', rationale: 'Two charges', alternatives: ['Voucher'], decided_by: 'frontline' }],
  actions: {
    pending: [{ id: 'a1', description: 'Refund', assignee: 'resolver', priority: 'high', depends_on: ['a0'] }],
    completed: [{ id: 'a0', description: 'Look up', result: 'found', completed_by: 'frontline' }],
    failed: [{ id: 'a9', description: 'Call', error: 'no answer' }],
  },
  dependencies: [{ id: 'x1', type: 'system', description: 'Ledger', status: 'up', source: 'ops' }],
};

/** The routes that take a body. */
type WithBody = { [Name in keyof typeof routes]: object extends (typeof routes)[Name]['body'] ? never : Name }[keyof typeof routes];

/** A valid body for each route, by the operation's name. */
const bodiesOf: Record<WithBody, Record<string, unknown>> = {
  createPacket: whole,
  chainPacket: whole,
  patchPacket: {
    status: 'claimed',
    decisions: whole.decisions,
    actions: whole.actions,
    context: { summary: 'On' },
    hitl: createExample.hitl,
  },
  askQuestion: { question: 'Refund?', reason: 'Policy', options: ['Yes'], required: true, key: 'refund', timeout_seconds: 60 },
  claimPacket: { agent_id: 'resolver', agent_name: 'Resolver', framework: 'langgraph' },
  respondPacket: { response: 'Approve', responded_by: 'dana', notes: 'Loyal customer' },
  batchCreate: { packets: [whole] },
  batchClaim: { packet_ids: [unknownId], agent_id: 'resolver', agent_name: 'Resolver', framework: 'langgraph' },
  batchComplete: { packet_ids: [unknownId], agent_id: 'resolver' },
  claimNext: {
    agent_id: 'resolver',
    agent_name: 'Resolver',
    framework: 'langgraph',
    lease_seconds: 60,
    target_agent: 'resolver',
    tags: ['billing'],
    priorities: ['high'],
    wait_seconds: 0,
  },
  renewLease: { lease_seconds: 60 },
  publishContract: { schema: { type: 'object' }, description: 'An order', examples: [{}] },
  askApproval: {
    agent: { id: 'refunds', name: 'Refunds' },
    action: { tool: 'refund', arguments: {} },
    reason: 'Twice',
    exclude_source: true,
  },
  startExecution: { arguments_digest: '0'.repeat(64) },
  endExecution: { status: 'succeeded' },
  createErasure: { subject: 'customer:4711', reason: 'Request of 1 March' },
  putPolicy: { match: { tools: ['refund'] }, rules: [{ then: { ask: [{ from: ['group:finance'] }] } }] },
  tryPolicies: { agent: 'refund-eu', action: { tool: 'refund', arguments: {} } },
  replayPolicy: { limit: 10 },
  putGroup: { members: ['dana', 'eli'] },
  putSchedule: {
    ...{ cron: '0 9 * * 1', timezone: 'Europe/Berlin', active: true, missed: 'latest' },
    packet: {
      metadata: { source_agent: { id: 'a', name: 'A', framework: '' }, target_agent: { id: 'b', name: 'B' } },
      context: { summary: 'Weekly' },
    },
  },
  putDelegation: { to: 'eli', until: '2099-01-01T00:00:00Z', reason: 'On leave' },
  createWebhook: { url: 'https://example.com/hook', events: ['packet.created'], secret: 'a-secret-of-16-or-more' },
  patchWebhook: { url: 'https://example.com/hook', events: ['packet.created'], secret: 'a-secret-of-16-or-more', active: true },
  retryAll: { webhook_id: unknownId, force: true },
  rotateKey: { overlap_seconds: 60 },
  createAnswerLink: { responder: 'dana', expires_in: 60 },
  createChannel: { kind: 'slack', target: 'https://hooks.slack.com/services/T/B/x', name: 'Dana', events: ['asked'], responder: 'dana' },
  patchChannel: { target: 'https://hooks.slack.com/services/T/B/y', name: 'Dana', events: ['asked'], responder: 'dana', active: true },
  createKey: { name: 'ci', tier: 'pro', admin: false, tenant_id: unknownId },
  createTenant: { name: 'Acme', tier: 'pro', handoffs_per_day: 5, max_api_keys: 5 },
  patchTenant: { name: 'Acme', tier: 'pro', handoffs_per_day: 5, max_api_keys: 5 },
};
export const bodies: Readonly<Record<string, Record<string, unknown>>> = bodiesOf;
