import { QueryClientProvider } from '@tanstack/react-query';
import { createBrowserRouter, Navigate, RouterProvider } from 'react-router';

import { Skeleton } from '../../kit/web/components/feedback.tsx';
import { Toasts } from '../../kit/web/components/toasts.tsx';
import { queryClient } from './data/queries.ts';
import { ChainList } from './pages/chain-list.tsx';
import { NotFound, PageFailure } from './pages/not-found.tsx';
import { Shell } from './shell.tsx';

// The list is part of the first load; other pages are loaded when opened.
const router = createBrowserRouter(
  [
    {
      element: <Shell />,
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
      <Toasts>
        <RouterProvider router={router} />
      </Toasts>
    </QueryClientProvider>
  );
}
