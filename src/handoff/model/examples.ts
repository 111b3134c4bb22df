/** The create request used as an example in the documentation and the tests. */
export const createExample = {
  metadata: {
    source_agent: { id: 'frontline', name: 'Frontline agent', framework: 'langgraph' },
    target_agent: { id: 'resolver', name: 'Resolution desk' },
    priority: 'high',
    tags: ['billing'],
  },
  context: {
    summary: 'The customer was charged twice for order 4711 and asks for a refund.',
    conversation_state: [{ role: 'user', content: 'I was charged twice.' }],
    artifacts: [{ key: 'order', value: { id: 4711, total: 59.9 }, content_type: 'application/json' }],
  },
  decisions: [{ id: 'd1', decision: 'Treat it as a duplicate charge', rationale: 'Two charges, one order' }],
  actions: { pending: [{ id: 'a1', description: 'Refund the second charge', assignee: 'resolver' }] },
  hitl: {
    required: true,
    reason: 'Refunds over 50 need approval',
    question: 'Refund 59.90?',
    options: ['Approve', 'Refuse'],
    timeout_seconds: 3600,
  },
};

const id = '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b';
const created = '2026-03-01T09:30:00.000Z';

const head = { id, version: '1.0.0', parent_packet_id: null, status: 'created', revision: 1, lease: null };
const metadata = { ...createExample.metadata, created_at: created };
const hitl = {
  ...createExample.hitl,
  response: null,
  responded_by: null,
  responded_at: null,
  notes: null,
  requested_at: null,
  expires_at: null,
  question_id: null,
  asked_by: null,
};
const tail = {
  claimed_by: null,
  claimed_at: null,
  created_at: created,
  updated_at: created,
  _links: { self: `/api/v1/packets/${id}`, claim: `/api/v1/packets/${id}/claim`, history: `/api/v1/packets/${id}/history` },
};

/** The packet created by the request. */
export const packetExample = {
  ...head,
  metadata,
  context: { ...createExample.context, custom: {} },
  decisions: createExample.decisions,
  actions: { ...createExample.actions, completed: [], failed: [] },
  dependencies: [],
  hitl,
  ...tail,
};

/** The same packet in a list. */
export const summaryExample = {
  ...head,
  metadata,
  context: { summary: createExample.context.summary },
  hitl,
  counts: { decisions: 1, pending: 1, completed: 0, failed: 0, dependencies: 0, turns: 1, artifacts: 1 },
  ...tail,
};

const claimant = { agent_id: 'resolver', agent_name: 'Resolver', framework: 'langgraph' };
const claimedAt = '2026-03-01T09:31:00.000Z';

/** The packet after its claim. */
export const claimedExample = {
  ...packetExample,
  status: 'claimed',
  revision: 2,
  claimed_by: claimant,
  claimed_at: claimedAt,
  updated_at: claimedAt,
};

/** The answer to a second claim. */
export const conflictExample = {
  detail: 'The packet is claimed; Resolver holds it.',
  code: 'CONFLICT',
  field: null,
  status_code: 409,
  request_id: '2s-1',
  claimed_by: { ...claimant, claimed_at: claimedAt },
};

/** The packet after an update that starts the work and adds a decision. */
export const startedExample = {
  ...claimedExample,
  status: 'in_progress',
  revision: 3,
  decisions: [...createExample.decisions, { id: 'd2', decision: 'Refund in full', rationale: 'Within 14 days' }],
  updated_at: '2026-03-01T09:32:00.000Z',
};

/** The packet after a person has answered its question. */
export const answeredExample = {
  ...startedExample,
  status: 'claimed',
  revision: 5,
  hitl: {
    ...hitl,
    response: 'Approve',
    responded_by: 'dana@example.com',
    responded_at: '2026-03-01T09:40:00.000Z',
    notes: 'Loyal customer',
    requested_at: '2026-03-01T09:33:00.000Z',
    expires_at: '2026-03-01T10:33:00.000Z',
  },
  updated_at: '2026-03-01T09:40:00.000Z',
};

/** The completed packet. */
export const completedExample = {
  ...answeredExample,
  status: 'completed',
  revision: 6,
  updated_at: '2026-03-01T09:45:00.000Z',
};

const childId = '0197b5b0-1d2c-7a45-8b6f-9e0d1c2b3a49';

/** A child of the packet. */
export const chainedExample = {
  ...packetExample,
  id: childId,
  parent_packet_id: id,
  _links: { self: `/api/v1/packets/${childId}`, claim: `/api/v1/packets/${childId}/claim`, history: `/api/v1/packets/${childId}/history` },
};
