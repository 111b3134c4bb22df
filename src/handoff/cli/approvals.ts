import { objectIn, paged } from './flags.ts';
import { approvalColumns, delegationColumns, groupColumns, policyColumns, standingColumns } from './output/approval-views.ts';
import { done, json, list } from './output/show.ts';
import { onePacket } from './output/views.ts';
import { type Fields, type Flag, type Row, row, several, whole } from './rows.ts';

const call: readonly Flag[] = [
  { flags: '--agent <id>', text: 'the agent', required: true },
  { flags: '--tool <name>', text: 'the tool', required: true },
  { flags: '--arguments <json>', text: 'the arguments of the call, as a JSON object', parse: objectIn, value: {} },
];
const decisionFlags: readonly Flag[] = [
  {
    flags: '--decision <decision>',
    text: 'approve, edit, reject or respond',
    choices: ['approve', 'edit', 'reject', 'respond'],
    required: true,
  },
  { flags: '--by, --responded-by <name>', text: 'the person who decides (default: the responder of the key)' },
  { flags: '--arguments <json>', text: 'with edit: the whole arguments, as a JSON object', parse: objectIn },
  { flags: '--message <text>', text: 'with reject or respond: what to say to the agent' },
  { flags: '--notes <text>', text: 'additional remarks' },
  { flags: '--remember <scope>', text: 'with approve: let it stand for the same call, or any call of the tool', choices: ['call', 'tool'] },
  { flags: '--seconds <n>', text: 'how long it stands', parse: whole(1, 31_536_000), value: 86_400 },
];

/** The commands of approvals: actions, policies, groups and delegations. */
export const approvals: readonly Row[] = [
  row('askApproval', {
    name: 'approvals ask',
    text: 'ask for the approval of a tool call; the same agent and call id again finds the same packet',
    flags: [
      ...call,
      { flags: '--call-id <id>', text: "the id of the call in the agent's framework" },
      { flags: '--reason <text>', text: 'why a person is asked' },
      { flags: '--responder <name>', text: 'who is asked' },
    ],
    prepare: ({ agent, tool, arguments: given, call_id, ...fields }: Fields) => ({
      agent: { id: agent },
      action: { tool, arguments: given, ...(call_id === undefined ? {} : { call_id }) },
      ...fields,
    }),
    show: onePacket,
  }),
  row('listAwaiting', {
    name: 'approvals list',
    text: 'list the packets that await a person, the longest waiting first, with tool and step',
    flags: paged,
    show: list(approvalColumns, 'packets', { none: 'Nothing awaits a person.' }),
  }),
  row('respondPacket', {
    name: 'approvals decide',
    text: 'approve, edit, reject or answer an action',
    flags: decisionFlags,
    prepare: ({ remember: scope, seconds, ...fields }: Fields) => ({
      ...fields,
      ...(scope === undefined ? {} : { remember: { scope, seconds } }),
    }),
    show: onePacket,
  }),
  row('tryPolicies', {
    name: 'policies try',
    text: 'say which policy would decide about a tool call, and where the others do not fit',
    flags: call,
    prepare: ({ agent, tool, arguments: given }: Fields) => ({ agent, action: { tool, arguments: given } }),
    show: json,
  }),
  row('listPolicies', {
    name: 'policies list',
    text: 'list the policies, by name',
    show: list(policyColumns, 'policies', { none: 'No policies.', id: 'name' }),
  }),
  row('getPolicy', { name: 'policies get', text: 'show a policy', show: json }),
  {
    name: 'policies set',
    text: 'publish a policy; questions that are open keep the version with which they were asked',
    operands: [
      { name: 'name', text: 'its name' },
      { name: 'file', text: 'a JSON or YAML file with {match, rules, ...}; - reads standard input' },
    ],
    flags: [{ flags: '--if-match <etag>', text: 'change it only if this is still its ETag' }],
    run: async (...given) => (await import('./policies.ts')).setPolicy(...given),
  },
  {
    name: 'policies replay',
    text: 'say what a policy would have decided about past actions, beside what people did',
    operands: [
      { name: 'name', text: 'its name' },
      { name: 'file', text: 'a policy to replay that need not be stored, as JSON or YAML', optional: true },
    ],
    flags: [
      { flags: '--since <time>', text: 'only actions decided from then on (ISO 8601)' },
      { flags: '--until <time>', text: 'only actions decided before then (ISO 8601)' },
      { flags: '--limit <n>', text: 'the most past actions, 1 to 1000', parse: whole(1, 1000) },
    ],
    run: async (...given) => (await import('./policies.ts')).replayPolicy(...given),
  },
  row('deletePolicy', { name: 'policies remove', text: 'remove a policy', show: done('The policy is removed.') }),
  row('listGroups', {
    name: 'groups list',
    text: 'list the groups, by name',
    show: list(groupColumns, 'groups', { id: 'name' }),
  }),
  row('getGroup', { name: 'groups get', text: 'show the members of a group', show: json }),
  row('putGroup', {
    name: 'groups set',
    text: 'set the members of a group',
    flags: [{ flags: '--member <name>', text: 'a member (repeatable)', field: 'members', parse: several, required: true }],
    show: json,
  }),
  row('deleteGroup', { name: 'groups remove', text: 'remove a group', show: done('The group is removed.') }),
  row('listDelegations', {
    name: 'delegations list',
    text: 'list who approves in whose place',
    show: list(delegationColumns, 'delegations', { id: 'person' }),
  }),
  row('putDelegation', {
    name: 'delegations set',
    text: "let a person's approvals be given by another one",
    flags: [
      { flags: '--to <name>', text: 'who approves in that place', required: true },
      { flags: '--until <time>', text: 'until when (ISO 8601)', required: true },
      { flags: '--from <time>', text: 'from when (ISO 8601; default: now)' },
      { flags: '--reason <text>', text: 'why' },
    ],
    show: json,
  }),
  row('deleteDelegation', { name: 'delegations remove', text: 'end a delegation', show: done('The delegation has ended.') }),
  row('listStandingApprovals', {
    name: 'standing list',
    text: 'list what people have approved for later',
    show: list(standingColumns, 'standing_approvals', { none: 'No standing approvals.' }),
  }),
  row('deleteStandingApproval', {
    name: 'standing remove',
    text: 'revoke a standing approval',
    show: done('The standing approval is revoked.'),
  }),
];
