import { startReceiver, type TestReceiver } from './receiver.ts';
import type { TestService } from './service.ts';
import { endOfFile } from './shared.ts';

/** The settings of a service whose channels may reach this machine, behind a proxy: addresses have a limit. */
export const channelSettings = {
  SERVICE_PUBLIC_URL: 'https://desk.example.com',
  SERVICE_WEBHOOK_ALLOW: '127.0.0.1',
  SERVICE_TRUSTED_PROXIES: '127.0.0.1',
};

let visits = 0;
/** The headers of a visitor who comes from an address of the own. */
export const fromElsewhere = () => {
  visits += 1;
  return { 'x-forwarded-for': `10.1.${(visits >> 8) & 255}.${visits & 255}` };
};

let receiver: Promise<TestReceiver> | undefined;

/** Makes a channel for all questions of a tenant, to a receiver that the tests of a file share. */
export async function addChannel(service: TestService): Promise<void> {
  receiver ??= startReceiver(endOfFile, 200);
  await service.call('POST', '/channels', { body: { kind: 'slack', target: (await receiver).url } });
}

const linkPattern = /https:\/\/desk\.example\.com(\/answer\/[0-9a-f]{96})/;

/**
 * Sends what waits for channels, and returns the path of the answer link in the latest message about a packet, with its page; undefined
 * without one that is open.
 */
export async function channelLinkOf(
  service: TestService,
  id: string,
): Promise<{ path: string; page: string; message: string } | undefined> {
  const { posts } = await receiver!;
  // A round makes few attempts at a receiver that took long once.
  for (let sent = -1; sent !== posts.length; ) {
    sent = posts.length;
    await service.handoff.runOnce.deliver();
  }
  // What was sent just now is among the last.
  for (const { body } of posts.slice(-12).toReversed()) {
    const path = linkPattern.exec(body)?.[1];
    if (path === undefined) continue;
    const { status, text } = await service.call('GET', `/${path}`, { key: null, headers: fromElsewhere() });
    if (status === 200 && text.includes(`Packet ${id}`)) return { path: `/${path}`, page: text, message: body };
  }
  return undefined;
}
