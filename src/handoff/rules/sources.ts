/** The types of the events that can make their key a source of the packet's question. */
export const sourceEvents = ['created', 'claimed', 'awaiting_human', 'updated', 'in_progress'] as const;

/**
 * Whether the key of an event is a source of the packet's question: it created or claimed the packet, asked the question
 * or changed it.
 * @param details the details of the event, as JSON
 */
export function makesSource(eventType: string, details: string): boolean {
  if (eventType === 'created' || eventType === 'claimed' || eventType === 'awaiting_human') return true;
  const { fields } = JSON.parse(details) as { fields?: readonly string[] };
  return fields?.includes('hitl') ?? false;
}
