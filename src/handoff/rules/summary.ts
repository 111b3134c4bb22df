import type { Packet } from '../model/packet.ts';

/** A packet as it goes out, and as lists show it, both as JSON text. */
interface Printed {
  readonly packet: string;
  /** Everything at its top level but the long parts, which are counted instead. */
  readonly summary: string;
}

const printed = Symbol('printed');

/**
 * Packets are never changed in place, so each is printed once, and what the two texts share is printed once for both.
 * The texts stay with the packet under a symbol that copies of it do not take along; a WeakMap would cost more than the
 * printing.
 */
function print(packet: Packet & { readonly [printed]?: Printed }): Printed {
  const known = packet[printed];
  if (known !== undefined) return known;
  const { context, decisions, actions, dependencies, hitl, claimed_by, claimed_at, created_at, updated_at, _links, ...front } = packet;
  const head = JSON.stringify(front).slice(0, -1);
  const tail = JSON.stringify({ hitl, claimed_by, claimed_at, created_at, updated_at, _links }).slice(1);
  const long = JSON.stringify({ context, decisions, actions, dependencies }).slice(1, -1);
  const counts = JSON.stringify({
    decisions: decisions.length,
    pending: actions.pending.length,
    completed: actions.completed.length,
    failed: actions.failed.length,
    dependencies: dependencies.length,
    turns: context.conversation_state.length,
    artifacts: context.artifacts.length,
  });
  const texts = {
    packet: `${head},${long},${tail}`,
    summary: `${head},"context":{"summary":${JSON.stringify(context.summary)}},"counts":${counts},${tail}`,
  };
  Object.defineProperty(packet, printed, { value: texts, enumerable: false });
  return texts;
}

/** A packet as it goes out, as JSON text. */
export function packetText(packet: Packet): string {
  return print(packet).packet;
}

/** A packet as lists show it, as JSON text. */
export function summaryText(packet: Packet): string {
  return print(packet).summary;
}
