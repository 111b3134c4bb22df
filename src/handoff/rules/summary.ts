import type { Packet } from '../model/packet.ts';

/** A packet as lists show it: everything at its top level but the long parts, which are counted instead. */
export function summarize(packet: Packet): Record<string, unknown> {
  const { context, decisions, actions, dependencies, ...rest } = packet;
  return {
    ...rest,
    context: { summary: context.summary },
    counts: {
      decisions: decisions.length,
      pending: actions.pending.length,
      completed: actions.completed.length,
      failed: actions.failed.length,
      dependencies: dependencies.length,
      turns: context.conversation_state.length,
      artifacts: context.artifacts.length,
    },
  };
}

const texts = new WeakMap<Packet, string>();

/** A packet as it goes out, as JSON text. Packets are never changed in place, so each is printed once. */
export function packetText(packet: Packet): string {
  let text = texts.get(packet);
  if (text === undefined) {
    text = JSON.stringify(packet);
    texts.set(packet, text);
  }
  return text;
}
