import { createHmac } from 'node:crypto';
import { Pool } from 'undici';

import { serveTasks } from './programs.ts';
import { timesOf } from './times.ts';

/** The minimal webhook sender: undici with 32 keep-alive connections, and an HMAC over each body. It stores nothing. */

const connections = 32;

const tasks = {
  async send({ url, body, count }: { url: string; body: string; count: number }) {
    const pool = new Pool(new URL(url).origin, { connections, pipelining: 1 });
    const times = await timesOf(count, connections, async () => {
      const signature = createHmac('sha256', 'a-secret-for-the-benchmark').update(body).digest('hex');
      const headers = { 'content-type': 'application/json; charset=utf-8', 'x-service-signature': `sha256=${signature}` };
      const answer = await pool.request({ method: 'POST', path: '/', headers, body });
      await answer.body.dump();
      if (answer.statusCode !== 204) throw new Error(`The receiver answered ${answer.statusCode}.`);
    });
    await pool.close();
    return times;
  },
};

/** The tasks of the bare sender. */
export type BareSenderTasks = typeof tasks;

serveTasks(tasks);
