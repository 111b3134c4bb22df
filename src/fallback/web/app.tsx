import { QueryClientProvider } from '@tanstack/react-query';
import { createBrowserRouter, Navigate, RouterProvider } from 'react-router';

import { NotFound, PageFailure } from '../../kit/web/app/failure.tsx';
import { KeyForm } from '../../kit/web/app/key-form.tsx';
import { queryClient } from '../../kit/web/app/queries.ts';
import { Shell } from '../../kit/web/app/shell.tsx';
import { Product } from '../../kit/web/app/title.ts';
import { Badge, Skeleton } from '../../kit/web/components/feedback.tsx';
import { Toasts } from '../../kit/web/components/toasts.tsx';
import { useAccess } from './data/queries.ts';
import { ChainList } from './pages/chain-list.tsx';

const links = [
  { to: '/chains', label: 'Chains' },
  { to: '/import', label: 'Import' },
  { to: '/templates', label: 'Templates' },
];

function AccessBadge() {
  const access = useAccess();
  if (access === undefined || access.may_write) return null;
  return <Badge tone="info">Read only</Badge>;
}

// The list is part of the first load; other pages are loaded when opened.
const router = createBrowserRouter(
  [
    {
      element: <Shell name="fallback chains" links={links} tools={<AccessBadge />} keyForm={<KeyForm />} />,
      errorElement: <PageFailure />,
      hydrateFallbackElement: <Skeleton lines={6} height="3rem" />,
      children: [
        { index: true, element: <Navigate to="/chains" replace /> },
        { path: 'chains', element: <ChainList /> },
        { path: 'chains/new', lazy: async () => ({ Component: (await import('./pages/chain-edit.tsx')).NewChain }) },
        {
          path: 'chains/:id',
          lazy: async () => ({ Component: (await import('./pages/chain.tsx')).ChainPage }),
          children: [
            { index: true, lazy: async () => ({ Component: (await import('./pages/chain-overview.tsx')).ChainOverview }) },
            { path: 'what-if', lazy: async () => ({ Component: (await import('./pages/what-if.tsx')).WhatIf }) },
            { path: 'tests', lazy: async () => ({ Component: (await import('./pages/chain-tests.tsx')).ChainTests }) },
            { path: 'export', lazy: async () => ({ Component: (await import('./pages/export.tsx')).ExportPage }) },
          ],
        },
        { path: 'chains/:id/edit', lazy: async () => ({ Component: (await import('./pages/chain-edit.tsx')).EditChain }) },
        { path: 'results/:id', lazy: async () => ({ Component: (await import('./pages/result.tsx')).ResultPage }) },
        { path: 'compare', lazy: async () => ({ Component: (await import('./pages/compare.tsx')).ComparePage }) },
        { path: 'import', lazy: async () => ({ Component: (await import('./pages/import.tsx')).ImportPage }) },
        { path: 'templates', lazy: async () => ({ Component: (await import('./pages/templates.tsx')).TemplatesPage }) },
        { path: '*', element: <NotFound /> },
      ],
    },
  ],
  { basename: '/dashboard' },
);

/** The dashboard. */
export function App() {
  return (
    <QueryClientProvider client={queryClient}>
      <Product value="Fallback chains">
        <Toasts>
          <RouterProvider router={router} />
        </Toasts>
      </Product>
    </QueryClientProvider>
  );
}
