import { StreamResponse } from '@a2a-js/sdk';

import type { Packet } from '../model/packet.ts';
import { taskOf } from './task.ts';

/** The body of a push notification: the task as it is now (A2A 1.0, section 4.3.3). */
export function notificationOf(packet: Packet, contextId: string): string {
  const value = taskOf(packet, contextId);
  return JSON.stringify(StreamResponse.toJSON({ payload: { $case: 'task', value } }));
}
