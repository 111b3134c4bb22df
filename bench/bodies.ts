import { createExample } from '../src/handoff/model/examples.ts';

const words =
  'order refund customer invoice shipment carrier warehouse address payment card charge duplicate receipt return policy approve escalate supervisor account email ' +
  'reservation flight passenger baggage insurance cabin upgrade delay voucher certificate balance window agent review evidence transcript summary decision follow';
const vocabulary = words.split(' ');

/** Pseudo-random numbers, the same at every run. */
function createRandom(seed = 1): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** A text of about the given number of characters. */
function prose(random: () => number, length: number): string {
  let text = '';
  while (text.length < length) text += `${vocabulary[Math.floor(random() * vocabulary.length)]} `;
  return text.trimEnd();
}

/** A create request of about the given number of bytes: a conversation, two artifacts, a decision and an action. */
export function packetOfBytes(bytes: number, seed = 1): string {
  const random = createRandom(seed);
  const { hitl: _, ...example } = structuredClone(createExample);
  const conversation = example.context.conversation_state as { role: string; content: string }[];
  for (let turn = 1; JSON.stringify(example).length < bytes - 160; turn += 1) {
    const left = bytes - JSON.stringify(example).length;
    conversation.push({ role: turn % 2 === 0 ? 'user' : 'assistant', content: prose(random, Math.min(240, left - 60)) });
  }
  return JSON.stringify(example);
}

/** The words to search for, by how many seeded packets have them. */
export const searched = {
  /** In every packet. */
  everywhere: 'handoff',
  /** In 42 of 100 packets. */
  common: 'dispute',
  /** In 5 of 100 packets. */
  some: 'recurring',
  /** In one packet of 5,000. */
  rare: 'zephyrine',
  /** In one packet of 100 as a phrase; other packets have its words separately. */
  phrase: ['gold', 'member'],
} as const;

let conversations: { role: string; content: string }[][] | undefined;

/** The create request of the seeded packet with this number: about 2 KB, by one of fifty agents. */
export function seededRequest(number: number): Record<string, unknown> {
  conversations ??= Array.from({ length: 200 }, (_, index) => JSON.parse(packetOfBytes(1850, index + 1)).context.conversation_state);
  const { hitl: _, ...example } = createExample;
  const standing = number % 100 === 7 ? searched.phrase.join(' ') : number % 3 === 0 ? 'gold for a member' : 'regular';
  const words = [
    searched.everywhere,
    number % 100 < 42 ? searched.common : 'question',
    number % 20 === 3 ? searched.some : 'single',
    number % 5000 === 11 ? searched.rare : 'plain',
    standing,
  ];
  return {
    ...example,
    metadata: {
      ...example.metadata,
      source_agent: { ...example.metadata.source_agent, id: `agent-${number % 50}` },
      tags: [`batch-${number % 20}`],
    },
    context: {
      ...example.context,
      summary: `Order ${number}: ${words.join(', ')}.`,
      conversation_state: conversations[number % conversations.length],
    },
  };
}
