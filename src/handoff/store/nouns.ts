import { agents } from './agents.ts';
import { ages } from './ages.ts';
import { answerLinks } from './answer-links.ts';
import { claimQueue } from './claim-queue.ts';
import { counters } from './counters.ts';
import { deliveries } from './deliveries.ts';
import { documents } from './documents.ts';
import { erasures } from './erasures.ts';
import { executions } from './executions.ts';
import { idempotency } from './idempotency.ts';
import { keys } from './keys.ts';
import type { Noun } from './noun.ts';
import { openPacketCounts } from './open-packets.ts';
import { packets } from './packets.ts';
import { people } from './people.ts';
import { questions } from './questions.ts';
import { schedules } from './schedules.ts';
import { sessions } from './sessions.ts';
import { stats } from './stats.ts';
import { tenants } from './tenants.ts';
import { trail } from './trail.ts';
import { webhooks } from './webhooks.ts';

/**
 * Everything that is stored, by the name that units of work and readers use, in lock order. The trail comes last of what units
 * write, because a tenant's position counter stays locked from there to the commit.
 */
export const nouns = {
  tenants,
  keys,
  documents,
  schedules,
  people,
  sessions,
  webhooks,
  erasures,
  packets,
  questions,
  claimQueue,
  answerLinks,
  deliveries,
  executions,
  idempotency,
  counters,
  openPacketCounts,
  trail,
  agents,
  ages,
  stats,
} satisfies Record<string, Noun>;
