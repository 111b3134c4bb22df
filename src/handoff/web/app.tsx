import { LogOut, UserRound } from 'lucide-react';
import { useCallback } from 'react';
import { Navigate, type RouteObject, useNavigate } from 'react-router';

import { KeyForm } from '../../kit/web/app/key-form.tsx';
import { Shell } from '../../kit/web/app/shell.tsx';
import { Badge, Skeleton } from '../../kit/web/components/feedback.tsx';
import { Menu } from '../../kit/web/components/menu.tsx';
import { toast } from '../../kit/web/components/toasts.tsx';
import type { OwnKey } from '../model/key.ts';
import type { PacketSummary } from '../model/packet.ts';
import { live, useLive } from './data/live.ts';
import { useInbox, useOwnKey } from './data/queries.ts';
import { signIn, signOut } from './data/sign-in.ts';
import { Inbox } from './pages/inbox.tsx';

/** The pages in the navigation, each with the scopes of which one suffices for it; `admin`: only admin keys. */
const entries = [
  { to: '/overview', label: 'Overview', needs: ['read'] },
  { to: '/inbox', label: <InboxLabel />, needs: ['read'] },
  { to: '/packets', label: 'Packets', needs: ['read'] },
  { to: '/agents', label: 'Agents', needs: ['read'] },
  { to: '/policies', label: 'Policies', needs: ['read'] },
  { to: '/schedules', label: 'Schedules', needs: ['read', 'work'] },
  { to: '/webhooks', label: 'Webhooks', needs: ['manage'] },
  { to: '/channels', label: 'Channels', needs: ['manage'] },
  { to: '/keys', label: 'Keys', needs: ['manage', 'session'] },
  { to: '/tenants', label: 'Tenants', needs: ['admin'] },
  { to: '/audit', label: 'Audit', needs: ['read'] },
];

/** The links to the pages that a key can use. Until the key is known, they are those of a key that has all scopes and is no admin key. */
const linksFor = (own: OwnKey | undefined) =>
  entries.filter(({ needs }) =>
    needs.some((need) =>
      need === 'admin'
        ? own?.admin === true
        : need === 'session'
          ? own?.kind === 'session'
          : own === undefined || own.scopes.some((scope) => scope === need),
    ),
  );

/** The first page: the inbox, or for a key that may not read it the first page that it can use. */
function Home() {
  const own = useOwnKey();
  if (own === undefined) return <Skeleton lines={3} />;
  const links = linksFor(own);
  const to = links.find((link) => link.to === '/inbox') ?? links[0];
  // With a key that can use none of the pages, the inbox says which right it lacks.
  return to === undefined ? <Inbox /> : <Navigate to={to.to} replace />;
}

/** What is around every page of the console. It follows the tenant's events, and notifies of a new question while the page is hidden. */
export function Console() {
  const own = useOwnKey();
  const isLive = live.use();
  const navigate = useNavigate();
  const notify = useCallback(
    ({ id, hitl }: PacketSummary) => {
      if (!document.hidden || !('Notification' in globalThis) || Notification.permission !== 'granted') return;
      const notification = new Notification(hitl?.question ?? '', { tag: id });
      notification.onclick = () => {
        window.focus();
        void navigate(`/packets/${id}`);
      };
    },
    [navigate],
  );
  useLive(notify);
  const links = linksFor(own);
  const tools = (
    <>
      {own === undefined ? null : <Badge>{own.tenant.name}</Badge>}
      {isLive ? <Badge tone="good">live</Badge> : null}
    </>
  );
  const keyForm = <KeyForm asksToKeep from={<WhereKeysComeFrom />} signIn={signIn} />;
  const account = own?.kind === 'session' ? <AccountMenu own={own} /> : undefined;
  return <Shell name="console" links={links} tools={tools} account={account} keyForm={keyForm} />;
}

/** Who is signed in, with which rights, and the way out. */
function AccountMenu({ own }: { own: OwnKey }) {
  const rights = own.admin ? 'everything' : own.scopes.join(', ');
  return (
    <Menu
      label={`Signed in as ${own.name}`}
      icon={UserRound}
      about={
        <>
          <bdi>{own.name}</bdi> may: {rights}
        </>
      }
      entries={[
        {
          label: 'Sign out',
          icon: LogOut,
          onSelect: () => void signOut().catch(() => toast({ text: 'You are not signed out: the service did not answer.', tone: 'bad' })),
        },
      ]}
    />
  );
}

function WhereKeysComeFrom() {
  return (
    <>
      <p>Ask the operator of this service for a key. If you are the operator:</p>
      <ul>
        <li>The first start of the service printed an admin key.</li>
        <li>
          <code>npx service-cli admin-key</code>, where the service runs, makes another one.
        </li>
        <li>An admin key makes keys for others, on the page Keys.</li>
      </ul>
    </>
  );
}

function InboxLabel() {
  const number = useInbox().data?.length ?? 0;
  return <>Inbox{number === 0 ? '' : ` (${number})`}</>;
}

/** The pages of the console. The inbox is part of the first load; other pages are loaded when opened. */
export const pages: readonly RouteObject[] = [
  { index: true, element: <Home /> },
  { path: 'inbox', element: <Inbox /> },
  { path: 'inbox/answers', lazy: async () => ({ Component: (await import('./pages/my-answers.tsx')).MyAnswers }) },
  { path: 'overview', lazy: async () => ({ Component: (await import('./pages/overview.tsx')).Overview }) },
  { path: 'packets', lazy: async () => ({ Component: (await import('./pages/packets.tsx')).Packets }) },
  { path: 'packets/:id', lazy: async () => ({ Component: (await import('./pages/packet.tsx')).PacketPage }) },
  { path: 'agents', lazy: async () => ({ Component: (await import('./pages/agents.tsx')).Agents }) },
  { path: 'policies', lazy: async () => ({ Component: (await import('./pages/policies.tsx')).Policies }) },
  { path: 'schedules', lazy: async () => ({ Component: (await import('./pages/schedules.tsx')).Schedules }) },
  { path: 'schedules/:id', lazy: async () => ({ Component: (await import('./pages/schedules.tsx')).SchedulePage }) },
  {
    path: 'webhooks',
    lazy: async () => ({ Component: (await import('./pages/webhooks.tsx')).WebhookFrame }),
    children: [
      { index: true, lazy: async () => ({ Component: (await import('./pages/webhooks.tsx')).Webhooks }) },
      { path: 'dead-letters', lazy: async () => ({ Component: (await import('./pages/deliveries.tsx')).DeadLetters }) },
      { path: ':id', lazy: async () => ({ Component: (await import('./pages/webhooks.tsx')).WebhookPage }) },
    ],
  },
  {
    path: 'channels',
    lazy: async () => ({ Component: (await import('./pages/channels.tsx')).ChannelFrame }),
    children: [
      { index: true, lazy: async () => ({ Component: (await import('./pages/channels.tsx')).Channels }) },
      { path: ':id', lazy: async () => ({ Component: (await import('./pages/channels.tsx')).ChannelPage }) },
    ],
  },
  { path: 'keys', lazy: async () => ({ Component: (await import('./pages/keys.tsx')).Keys }) },
  { path: 'tenants', lazy: async () => ({ Component: (await import('./pages/tenants.tsx')).Tenants }) },
  { path: 'tenants/:id', lazy: async () => ({ Component: (await import('./pages/tenants.tsx')).TenantPage }) },
  { path: 'audit', lazy: async () => ({ Component: (await import('./pages/audit.tsx')).Audit }) },
];
