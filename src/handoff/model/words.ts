// What has no schema, so that the command line can load it without the library that makes schemas.

/** How urgent a packet may be. */
export const priorities = ['low', 'normal', 'high', 'critical'] as const;
/** Where a packet may stand. */
export const statuses = ['created', 'claimed', 'in_progress', 'awaiting_human', 'completed', 'failed', 'expired'] as const;
export const tiers = ['free', 'pro', 'business'] as const;
