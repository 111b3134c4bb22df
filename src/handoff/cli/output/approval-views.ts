import type { Delegation } from '../../model/delegation.ts';
import type { Group } from '../../model/group.ts';
import type { Packet, PacketSummary } from '../../model/packet.ts';
import type { Policy } from '../../model/policy.ts';
import type { StandingApproval } from '../../model/standing.ts';
import type { Column } from './table.ts';

export const approvalColumns: readonly Column<Packet | PacketSummary>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'AGENT', value: ({ hitl }) => hitl?.asked_by?.agent_id, least: 8 },
  { title: 'TOOL', value: ({ hitl }) => hitl?.action?.tool, least: 8 },
  {
    title: 'APPROVED',
    value: ({ hitl }) => (hitl?.step ? `${hitl.step.given} of ${hitl.step.count}, step ${hitl.step.index} of ${hitl.step.of}` : null),
  },
  { title: 'ASKED', value: ({ hitl }) => hitl?.step?.from.join(', ') ?? hitl?.responder, least: 12 },
];

export const policyColumns: readonly Column<Policy>[] = [
  { title: 'NAME', value: ({ name }) => name },
  { title: 'VERSION', value: ({ version }) => version },
  { title: 'ORDER', value: ({ order }) => order },
  { title: 'MODE', value: ({ mode }) => mode },
  { title: 'TOOLS', value: ({ match }) => match.tools.join(', ') || 'any', least: 8 },
  { title: 'RULES', value: ({ rules }) => rules.length },
];

export const groupColumns: readonly Column<Group>[] = [
  { title: 'NAME', value: ({ name }) => name },
  { title: 'MEMBERS', value: ({ members }) => members.join(', '), least: 12 },
];

export const delegationColumns: readonly Column<Delegation>[] = [
  { title: 'PERSON', value: ({ person }) => person },
  { title: 'TO', value: ({ to }) => to },
  { title: 'FROM', value: ({ from }) => from },
  { title: 'UNTIL', value: ({ until }) => until },
];

export const standingColumns: readonly Column<StandingApproval>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'PERSON', value: ({ person }) => person },
  { title: 'AGENT', value: ({ agent_id }) => agent_id },
  { title: 'TOOL', value: ({ tool }) => tool },
  { title: 'SCOPE', value: ({ scope }) => scope },
  { title: 'UNTIL', value: ({ expires_at }) => expires_at },
  { title: 'USES', value: ({ uses }) => uses },
];
