import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';

import type { BareSenderTasks } from '../bare-sender.ts';
import { packetOfBytes } from '../bodies.ts';
import type { HookTasks } from '../hooks.ts';
import { type Program, startProgram } from '../programs.ts';
import { figureOf } from '../report.ts';
import { compare, medianOf, requireGood, type Side } from '../rounds.ts';
import { jsonHeaders, type MeasuredService, type Run } from '../run.ts';
import { Tenant } from '../tenant.ts';
import { quantile } from '../times.ts';

const body = packetOfBytes(2048);
const batch = { packets: Array(100).fill(JSON.parse(body)) };
const create = { method: 'POST', path: '/api/v1/packets', headers: jsonHeaders, body } as const;

interface Context {
  run: Run;
  service: MeasuredService;
  hooks: Program<HookTasks>;
}

/** Registers a webhook with its own receiver. */
async function register({ service, hooks }: Context, isOpen: boolean): Promise<{ receiver: number; url: string }> {
  const receiver = await hooks.call('listen', isOpen);
  const hook = { url: receiver.url, secret: 'a-secret-for-the-benchmark', events: ['packet.created'] };
  await new Tenant(service.url).post('/api/v1/hooks', hook);
  return receiver;
}

async function queue(service: MeasuredService, count: number): Promise<void> {
  for (let made = 0; made < count; made += 100) await new Tenant(service.url).post('/api/v1/packets/batch', batch);
}

/** Runs a case with a service that delivers to receivers on this machine. */
async function withReceivers(run: Run, work: (context: Context) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(run.folder, 'webhooks-'));
  const service = await run.startService(`sqlite://${join(folder, 'service.db')}`, 'server', { SERVICE_WEBHOOK_ALLOW: '127.0.0.1' });
  const hooks = startProgram<HookTasks>('./hooks.ts', { place: 'load' });
  try {
    await work({ run, service, hooks });
  } finally {
    await Promise.all([service.stop(), hooks.stop()]);
  }
}

/** Webhooks: throughput, delay, and the effect of a dead receiver and of many webhooks on others. */
export async function webhooks(run: Run): Promise<void> {
  await withReceivers(run, throughput);
  await withReceivers(run, deliveryDelay);
  await withReceivers(run, besideDeadReceiver);
  await withReceivers(run, creating);
}

/** Pending deliveries, sent and recorded, against signed posts of the same bytes without storage. */
async function throughput(context: Context): Promise<void> {
  const { run, service, hooks } = context;
  const count = run.options.quick ? 2_000 : 10_000;
  const own = await register(context, false);
  const other = await hooks.call('listen', true);
  const sender = startProgram<BareSenderTasks>('./bare-sender.ts', { place: 'server' });
  const envelope = JSON.stringify({ type: 'packet.created', data: JSON.parse(body) });
  const product: Side = {
    program: service.program,
    async prepare() {
      await hooks.call('open', { receiver: own.receiver, isOpen: false });
      await queue(service, count);
    },
    async run() {
      const received = hooks.call('receive', { receiver: own.receiver, count });
      await hooks.call('open', { receiver: own.receiver, isOpen: true });
      return received;
    },
  };
  const bare: Side = { program: sender, run: () => sender.call('send', { url: other.url, body: envelope, count }) };
  const compared = await compare(run.rounds, bare, product);
  await sender.stop();
  const {
    p50: _,
    p99: __,
    ...figure
  } = figureOf('webhooks: deliveries', 'bare undici and HMAC', compared, {
    better: 'more',
    required: 0.45,
    stretch: 0.55,
  });
  run.report(figure);
}

/** The delay from commit to receipt, with creates at half of the maximum rate. */
async function deliveryDelay(context: Context): Promise<void> {
  const { run, service, hooks } = context;
  const full = requireGood(await run.again(service.url, [create]));
  const { receiver } = await register(context, true);
  const rate = Math.floor(requireGood(await run.again(service.url, [create])).perSecond / 2);
  const p99 = await medianOf(run.rounds, async () => {
    const { committed } = await hooks.call('pace', { url: service.url, headers: jsonHeaders, body, rate, seconds: run.seconds, receiver });
    return quantile(committed, 0.99);
  });
  run.report({
    name: `webhooks: ms from commit to receipt, p99, at ${rate} a second`,
    against: `creates without a webhook: ${Math.round(full.perSecond)} a second`,
    value: p99,
    target: { better: 'less', required: 100, stretch: 50 },
  });
}

/** A healthy receiver's p95, measured from sending the create, next to a dead receiver with a large backlog. */
async function besideDeadReceiver(context: Context): Promise<void> {
  const { run, service, hooks } = context;
  const waiting = run.options.quick ? 2_000 : 10_000;
  const healthy = await register(context, true);
  const steady = async () => {
    const { sent } = await hooks.call('pace', {
      url: service.url,
      headers: jsonHeaders,
      body,
      rate: 100,
      seconds: 2 * run.seconds,
      receiver: healthy.receiver,
    });
    return quantile(sent, 0.95);
  };
  const alone = await medianOf(run.rounds, steady);
  await register(context, false);
  await queue(service, waiting);
  const beside = await medianOf(run.rounds, steady);
  run.report({
    name: `webhooks: p95 beside a dead receiver with ${waiting.toLocaleString('en-US')} waiting, ${beside.toFixed(1)} ms`,
    against: `alone: ${alone.toFixed(1)} ms`,
    value: beside / alone,
    target: { better: 'less', required: 1.5, stretch: 1.1 },
  });
}

/** How much ten webhooks add to the p99 of creates at a steady rate. */
async function creating(context: Context): Promise<void> {
  const { run, service } = context;
  const steady = async () =>
    requireGood(await run.load({ url: service.url, connections: 20, requests: [create], seconds: run.seconds, rate: 200 })).p99;
  const alone = await medianOf(run.rounds, steady);
  for (let index = 0; index < 10; index += 1) await register(context, true);
  const together = await medianOf(run.rounds, steady);
  run.report({
    name: 'p99 of creates, 200 a second, with 10 webhooks',
    p99: together,
    against: `without: p99 ${alone.toFixed(2)} ms`,
    value: together / alone,
    target: { better: 'less', required: 2, stretch: 1.5 },
  });
}
