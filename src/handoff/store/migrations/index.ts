import type { Migration } from '../../../kit/sql/migrate.ts';
import { packets } from './0001-packets.ts';
import { events } from './0002-events.ts';
import { webhooks } from './0003-webhooks.ts';
import { keys } from './0004-keys.ts';
import { work } from './0005-work.ts';
import { repeats } from './0006-repeats.ts';
import { rotation } from './0007-rotation.ts';
import { bounds } from './0008-bounds.ts';
import { rights } from './0009-rights.ts';
import { agents } from './0010-agents.ts';
import { answerLinks } from './0011-answer-links.ts';
import { traces } from './0012-traces.ts';
import { channels } from './0013-channels.ts';
import { retention } from './0014-retention.ts';
import { pushes } from './0015-pushes.ts';
import { waiting } from './0016-waiting.ts';

/** All migrations, in order. */
export const migrations: readonly Migration[] = [
  packets,
  events,
  webhooks,
  keys,
  work,
  repeats,
  rotation,
  bounds,
  rights,
  agents,
  answerLinks,
  traces,
  channels,
  retention,
  pushes,
  waiting,
];
