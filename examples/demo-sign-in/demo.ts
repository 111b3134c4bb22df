import { createHandoffClient } from '../../src/client.ts';
import { freePort } from '../../src/kit/free-port.ts';
import { createHandoff } from '../../src/server.ts';
import { say } from '../demo/show.ts';
import { clientId, clientSecret, type ProviderPerson, startProvider } from './provider.ts';
import { Visitor } from './visitor.ts';

/**
 * `npm run demo:sign-in`: an identity provider on loopback with three people in two groups, and a service at which they sign in. Dana
 * signs in to the console and approves a refund, and the history says who that was; Mia may only read and answer; Eli leaves. With
 * `-- --stay` both go on running, for a browser.
 */

const people = new Map<string, ProviderPerson>([
  ['dana', { email: 'dana@example.com', name: 'Dana', groups: ['ops', 'finance'] }],
  ['eli', { email: 'eli@example.com', name: 'Eli', groups: ['finance'] }],
  ['mia', { email: 'mia@example.com', name: 'Mia', groups: [] }],
]);

/** The body of an answer. */
// biome-ignore lint/suspicious/noExplicitAny: the answers of the demo have several shapes.
const bodyOf = async (answer: Promise<Response>): Promise<any> => (await answer).json();

async function main(): Promise<void> {
  const port = await freePort();
  const address = `http://127.0.0.1:${port}`;
  const provider = await startProvider({ people, service: address });
  await using service = await createHandoff({
    ...{ port, publicUrl: address, oidcIssuer: provider.issuer, oidcClientId: clientId, oidcClientSecret: clientSecret },
    ...{ oidcGroupsClaim: 'groups', oidcRights: { '*': ['read', 'respond'], 'idp:ops': ['read', 'work', 'respond', 'manage'] } },
  });
  try {
    const admin = createHandoffClient({ baseUrl: address, apiKey: service.adminKey });
    console.log(`The provider is at ${provider.issuer}, the service at ${address}.\n`);
    await admin.putPolicy({ params: { name: 'refunds' }, body: { rules: [{ then: { ask: [{ from: ['group:idp:finance'] }] } }] } });

    const dana = new Visitor();
    const { url } = await dana.signIn(address, 'dana');
    const own = await bodyOf(dana.call(address, 'GET', '/api/v1/keys/self'));
    say(undefined, 'dana', `signs in, and is at ${new URL(url).pathname}; may ${own.scopes.join(', ')}`);
    const action = { tool: 'refund', arguments: { order: '4711', amount: 500 } };
    const asked = await admin.askApproval({ body: { agent: { id: 'refunds' }, action, exclude_source: false } });
    say(undefined, 'agent', `asks whether to run refund for 500; the policy asks ${asked.hitl!.step!.from.join(', ')}`);

    const mia = new Visitor();
    await mia.signIn(address, 'mia');
    const answer = (responded_by: string) => ({ decision: 'approve', responded_by });
    const path = `/console/api/v1/packets/${asked.id}/respond`;
    const refused = await bodyOf(mia.call(address, 'POST', path, answer('mia@example.com')));
    say(undefined, 'mia', `approves: ${refused.code}`);
    const forged = await bodyOf(dana.call(address, 'POST', path, answer('eli@example.com')));
    say(undefined, 'dana', `approves as Eli: ${forged.detail}`);
    await bodyOf(dana.call(address, 'POST', path, answer('dana@example.com')));
    const { events } = await admin.packetHistory({ params: { id: asked.id } });
    const given = events.find(({ event_type }) => event_type === 'hitl_responded')!;
    const { answered_by } = given.details as { answered_by: { name: string; verified: boolean; method: string } };
    say(undefined, 'dana', `approves; the history says: ${given.actor}, verified: ${answered_by.verified}, by ${answered_by.method}`);

    const eli = new Visitor();
    await eli.signIn(address, 'eli');
    await dana.call(address, 'POST', '/api/v1/people/eli@example.com/suspend');
    say(undefined, 'eli', `is suspended, and gets ${(await eli.call(address, 'GET', '/api/v1/keys/self')).status}`);
    const { url: out } = await bodyOf(dana.call(address, 'POST', '/sign-out'));
    say(
      undefined,
      'dana',
      `signs out, here and at ${new URL(out).origin}; then gets ${(await dana.call(address, 'GET', '/api/v1/keys/self')).status}`,
    );
    if (answered_by.method !== 'sign_in' || !answered_by.verified || refused.code !== 'NOT_AN_APPROVER') process.exitCode = 1;
    if (!process.argv.includes('--stay'))
      return void console.log(`\nnpm run demo:sign-in -- --stay keeps both running: open ${address}/console`);
    console.log(`\nOpen ${address}/console and sign in. Ctrl+C ends both.`);
    await new Promise((resolve) => process.once('SIGINT', resolve));
  } finally {
    await provider.stop();
  }
}

await main();
