import { createHandoffClient } from '../../src/handoff/client/client.ts';
import type { Packet, PatchRequest } from '../../src/handoff/model/packet.ts';

/**
 * A worker: `SERVICE_API_KEY=... node examples/worker/worker.ts`. Claims packets for AGENT one after the other, each with a lease that
 * it renews while it works. If it dies or freezes, another worker gets its packet after the lease expires. In your own
 * project import `createHandoffClient` from 'baton'.
 */
const { AGENT = 'resolver', WORKER = `worker-${process.pid}`, LEASE_SECONDS = '60', SERVICE_URL, SERVICE_API_KEY } = process.env;
const lease_seconds = Number(LEASE_SECONDS);
const baseUrl = SERVICE_URL || 'http://localhost:8080';
// Retries until an unavailable service is back.
const client = createHandoffClient({ baseUrl, apiKey: SERVICE_API_KEY, retries: Number.POSITIVE_INFINITY });

/** The work: in this example, fetching the page that the packet names. */
async function work({ context }: Packet, signal: AbortSignal) {
  const page = await fetch(String(context.custom?.url), { signal });
  return { artifacts: [{ key: 'page', value: await page.text() }] };
}

for (;;) {
  const packet = await client.claimNext({ body: { agent_id: WORKER, target_agent: AGENT, wait_seconds: 60, lease_seconds } });
  if (packet === undefined) continue;
  const request = { params: { id: packet.id }, headers: { 'x-lease-token': packet.lease?.token ?? '' } };
  const lost = new AbortController();
  const renew = () => void client.renewLease(request).catch((error) => lost.abort(error));
  const heartbeat = setInterval(renew, (lease_seconds * 1000) / 3);
  const end = async (body: PatchRequest) => {
    await client.patchPacket({ ...request, body });
    console.log(`${body.status} ${packet.id}`);
  };
  await work(packet, lost.signal)
    .then((context) => end({ status: 'completed', context }))
    // Also if the service refuses the result: else the lease would expire, and the next worker do the same again.
    .catch((error) => {
      const failure = { id: 'failure', description: 'The work on this packet', error: String(error) };
      return end({ status: 'failed', actions: { failed: [failure] } });
    })
    // The lease was lost: another worker has the packet, and nothing was written.
    .catch((error) => console.log(`lost ${packet.id}: ${error.message}`));
  clearInterval(heartbeat);
}
