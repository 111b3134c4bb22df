// What has no schema, so that the command line can load it without the library that makes schemas.

/** How urgent a packet may be. */
export const priorities = ['low', 'normal', 'high', 'critical'] as const;
/** Where a packet may stand. */
export const statuses = ['created', 'claimed', 'in_progress', 'awaiting_human', 'completed', 'failed', 'expired'] as const;
export const tiers = ['free', 'pro', 'business'] as const;

/** What a webhook can be told of. */
export const webhookEvents = [
  'packet.created',
  'packet.claimed',
  'packet.in_progress',
  'packet.awaiting_human',
  'packet.completed',
  'packet.failed',
  'packet.expired',
  'hitl.response_ready',
] as const;

/** Where a delivery stands. Work in hand is a lease, and shows as what it was before. */
export const deliveryStatuses = ['pending', 'failed', 'delivered', 'dead_letter', 'cancelled'] as const;
