import { useCallback } from 'react';
import { type RouteObject, useNavigate } from 'react-router';

import { KeyForm } from '../../kit/web/app/key-form.tsx';
import { Shell } from '../../kit/web/app/shell.tsx';
import { Badge } from '../../kit/web/components/feedback.tsx';
import type { PacketSummary } from '../model/packet.ts';
import { live, useLive } from './data/live.ts';
import { useInbox, useOwnKey } from './data/queries.ts';
import { Inbox } from './pages/inbox.tsx';

/** What is around every page of the console. It follows the tenant's events, and notifies of a new question while the page is hidden. */
export function Console() {
  const own = useOwnKey();
  const isLive = live.use();
  const navigate = useNavigate();
  const notify = useCallback(
    ({ id, hitl }: PacketSummary) => {
      if (!document.hidden || !('Notification' in globalThis) || Notification.permission !== 'granted') return;
      const note = new Notification(hitl?.question ?? '', { tag: id });
      note.onclick = () => {
        window.focus();
        void navigate(`/packets/${id}`);
      };
    },
    [navigate],
  );
  useLive(notify);
  const links = [
    { to: '/inbox', label: <InboxLabel /> },
    { to: '/packets', label: 'Packets' },
    { to: '/agents', label: 'Agents' },
    { to: '/webhooks', label: 'Webhooks' },
    { to: '/keys', label: 'Keys' },
    ...(own?.admin ? [{ to: '/tenants', label: 'Tenants' }] : []),
    { to: '/audit', label: 'Audit' },
  ];
  const tools = (
    <>
      {own === undefined ? null : <Badge>{own.tenant.name}</Badge>}
      {isLive ? <Badge tone="good">live</Badge> : null}
    </>
  );
  return <Shell name="console" links={links} tools={tools} keyForm={<KeyForm asksToKeep />} />;
}

function InboxLabel() {
  const number = useInbox().data?.length ?? 0;
  return <>Inbox{number === 0 ? '' : ` (${number})`}</>;
}

/** The pages of the console. The inbox is part of the first load; other pages are loaded when opened. */
export const pages: readonly RouteObject[] = [
  { path: 'inbox', element: <Inbox /> },
  { path: 'packets', lazy: async () => ({ Component: (await import('./pages/packets.tsx')).Packets }) },
  { path: 'packets/:id', lazy: async () => ({ Component: (await import('./pages/packet.tsx')).PacketPage }) },
  { path: 'agents', lazy: async () => ({ Component: (await import('./pages/agents.tsx')).Agents }) },
  {
    path: 'webhooks',
    lazy: async () => ({ Component: (await import('./pages/webhooks.tsx')).Notifying }),
    children: [
      { index: true, lazy: async () => ({ Component: (await import('./pages/webhooks.tsx')).Webhooks }) },
      { path: 'dead-letters', lazy: async () => ({ Component: (await import('./pages/deliveries.tsx')).DeadLetters }) },
      { path: 'channels', lazy: async () => ({ Component: (await import('./pages/channels.tsx')).Channels }) },
      { path: 'channels/:id', lazy: async () => ({ Component: (await import('./pages/channels.tsx')).ChannelPage }) },
      { path: ':id', lazy: async () => ({ Component: (await import('./pages/webhooks.tsx')).WebhookPage }) },
    ],
  },
  { path: 'keys', lazy: async () => ({ Component: (await import('./pages/keys.tsx')).Keys }) },
  { path: 'tenants', lazy: async () => ({ Component: (await import('./pages/tenants.tsx')).Tenants }) },
  { path: 'tenants/:id', lazy: async () => ({ Component: (await import('./pages/tenants.tsx')).TenantPage }) },
  { path: 'audit', lazy: async () => ({ Component: (await import('./pages/audit.tsx')).Audit }) },
];
