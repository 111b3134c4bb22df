import { StreamResponse } from '@a2a-js/sdk';

import type { Packet } from '../model/packet.ts';
import { contextOf, taskOf } from './task.ts';

/** The body of a push notification: the task as it is now (A2A 1.0, section 4.3.3). */
export async function notificationOf(packet: Packet, find: (id: string) => Promise<Packet | undefined>): Promise<string> {
  const value = taskOf(packet, await contextOf(packet, find));
  return JSON.stringify(StreamResponse.toJSON({ payload: { $case: 'task', value } }));
}
