import type { RouteObject } from 'react-router';

import { KeyForm } from '../../kit/web/app/key-form.tsx';
import { Shell } from '../../kit/web/app/shell.tsx';
import { Badge } from '../../kit/web/components/feedback.tsx';
import { useMayWrite } from './data/queries.ts';
import { ChainList } from './pages/chain-list.tsx';

const links = [
  { to: '/chains', label: 'Chains', also: ['/results', '/compare'] },
  { to: '/import', label: 'Import' },
  { to: '/templates', label: 'Templates' },
];

const AccessBadge = () => (useMayWrite() ? null : <Badge tone="info">Read only</Badge>);

/** What is around every page of the dashboard. */
export const frame = <Shell name="fallback chains" links={links} tools={<AccessBadge />} keyForm={<KeyForm />} />;

/** The pages of the dashboard. The list is part of the first load; other pages are loaded when opened. */
export const pages: readonly RouteObject[] = [
  { path: 'chains', element: <ChainList /> },
  { path: 'chains/new', lazy: async () => ({ Component: (await import('./pages/chain-edit.tsx')).NewChain }) },
  {
    path: 'chains/:id',
    lazy: async () => ({ Component: (await import('./pages/chain.tsx')).ChainPage }),
    children: [
      { index: true, lazy: async () => ({ Component: (await import('./pages/chain-overview.tsx')).ChainOverview }) },
      { path: 'what-if', lazy: async () => ({ Component: (await import('./pages/what-if.tsx')).WhatIf }) },
      { path: 'tests', lazy: async () => ({ Component: (await import('./pages/chain-tests.tsx')).ChainTests }) },
      { path: 'rehearse', lazy: async () => ({ Component: (await import('./pages/rehearse.tsx')).RehearsePage }) },
      { path: 'export', lazy: async () => ({ Component: (await import('./pages/export.tsx')).ExportPage }) },
    ],
  },
  { path: 'chains/:id/edit', lazy: async () => ({ Component: (await import('./pages/chain-edit.tsx')).EditChain }) },
  { path: 'results/:id', lazy: async () => ({ Component: (await import('./pages/result.tsx')).ResultPage }) },
  { path: 'compare', lazy: async () => ({ Component: (await import('./pages/compare.tsx')).ComparePage }) },
  { path: 'import', lazy: async () => ({ Component: (await import('./pages/import.tsx')).ImportPage }) },
  { path: 'templates', lazy: async () => ({ Component: (await import('./pages/templates.tsx')).TemplatesPage }) },
];
