// Plain constants without schemas, so that the command line can load them without the schema library.

/** The priorities of a packet, lowest first. */
export const priorities = ['low', 'normal', 'high', 'critical'] as const;
/** The statuses of a packet. */
export const statuses = ['created', 'claimed', 'in_progress', 'awaiting_human', 'completed', 'failed', 'expired'] as const;
/** The tiers of tenants and keys, lowest first. */
export const tiers = ['free', 'pro', 'business'] as const;
/** What a key may do unless its scopes say otherwise: read; work on packets; answer questions; manage keys and webhooks. */
export const defaultScopes = ['read', 'work', 'respond', 'manage'] as const;
/** What a key may do. `erase`, which erases packets, is only given by its name. */
export const scopes = [...defaultScopes, 'erase'] as const;

/** The longest that a request waits for a packet, or until a packet is as it says, in seconds. */
export const maxWaitSeconds = 60;

/** The event types that a webhook gets unless it names others. */
export const defaultWebhookEvents = [
  'packet.created',
  'packet.claimed',
  'packet.in_progress',
  'packet.awaiting_human',
  'packet.completed',
  'packet.failed',
  'packet.expired',
  'hitl.response_ready',
] as const;

/** The event types that a webhook can subscribe to. */
export const webhookEvents = [...defaultWebhookEvents, 'packet.overdue', 'audit.head'] as const;

/** The kinds of channels, and the events that they send. */
export const channelKinds = ['email', 'slack'] as const;
export const channelEvents = ['asked', 'reminded', 'answered', 'overdue'] as const;

/** The statuses of a delivery. An attempt in progress is a lease, not a status: the delivery keeps its previous status. */
export const deliveryStatuses = ['pending', 'failed', 'delivered', 'dead_letter', 'cancelled'] as const;

/** The codes that a dry run of a creation can return. */
export const trialCodes = ['VALIDATION_ERROR', 'CONTRACT_VIOLATION', 'LOOP_GUARD', 'CALL_CHANGED', 'RATE_LIMITED'] as const;
