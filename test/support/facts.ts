import type { Facts } from '../../src/handoff/rules/action-case.ts';
import { decide as decideWith } from '../../src/handoff/rules/packet.ts';

/** The facts where nothing is published. */
export const noFacts: Facts = {
  judge: () => ({ verdict: null, skipped: [], shadow: [] }),
  faultsOf: () => [],
  people: () => ({ groups: new Map(), absences: [], suspended: new Set(), renamed: new Map() }),
  isBound: () => false,
  standing: () => [],
};

/** `decide` for a packet without earlier questions, where nothing is published. */
export const decide: typeof decideWith = (packet, command, now, stored = null, questions = { kept: {}, earlier: [], facts: noFacts }) =>
  decideWith(packet, command, now, stored, questions);
