import { createHandoffClient } from '../src/handoff/client/client.ts';
import { ApiError } from '../src/kit/client-errors.ts';

/**
 * The typed client: `SERVICE_API_KEY=... node examples/client.ts`. Creates a packet, claims it, gets a conflict on a second claim, completes
 * it with `If-Match`, and reads pages. In your own project the first import is `from 'baton'`.
 */
const client = createHandoffClient({
  baseUrl: process.env.SERVICE_URL || 'http://localhost:8080',
  apiKey: process.env.SERVICE_API_KEY,
});

const { id } = await client.createPacket({
  body: {
    metadata: {
      source_agent: { id: 'frontline', name: 'Frontline agent', framework: 'example' },
      target_agent: { id: 'resolver', name: 'Resolution desk' },
    },
    context: { summary: 'Order 4711 was charged twice; the customer asks for a refund.' },
  },
});
console.log(`created ${id}`);

await client.claimPacket({ params: { id }, body: { agent_id: 'resolver' } });
try {
  await client.claimPacket({ params: { id }, body: { agent_id: 'too-late' } });
} catch (error) {
  if (!(error instanceof ApiError) || error.status_code !== 409) throw error;
  console.log(`refused: ${error.code}, ${error.message}`);
}

const { headers } = await client.getPacket.withResponse({ params: { id } });
const done = await client.patchPacket({ params: { id }, body: { status: 'completed' }, headers: { 'if-match': headers.etag ?? '*' } });
console.log(`${done.status}, revision ${done.revision}`);

let count = 0;
for await (const packet of client.listPackets.items({ query: { source_agent: 'frontline', limit: 200 } }))
  if (packet.status === 'completed') count += 1;
console.log(`${count} completed of frontline`);
