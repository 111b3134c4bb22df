import { QueryClientProvider } from '@tanstack/react-query';
import { type ReactNode, StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { createBrowserRouter, Navigate, type RouteObject, RouterProvider } from 'react-router';

import { Skeleton } from '../components/feedback.tsx';
import { Toasts } from '../components/toasts.tsx';
import { NotFound, PageFailure } from './failure.tsx';
import { queryClient } from './queries.ts';

interface Application {
  /** Where the service serves the application. */
  basename: string;
  /** What is around every page. */
  frame: ReactNode;
  /** The path of the first page; left out where `pages` has an index. */
  home?: string;
  pages: readonly RouteObject[];
}

/** Renders the pages of an application. */
export function renderApplication({ basename, frame, home, pages }: Application): void {
  const inside: RouteObject[] = [
    ...(home === undefined ? [] : [{ index: true, element: <Navigate to={home} replace /> }]),
    ...pages,
    { path: '*', element: <NotFound /> },
  ];
  const errorElement = <PageFailure />;
  const hydrateFallbackElement = <Skeleton lines={6} height="3rem" />;
  // A page that fails keeps the frame.
  const children = [{ errorElement, children: inside }];
  const router = createBrowserRouter([{ element: frame, errorElement, hydrateFallbackElement, children }], { basename });
  createRoot(document.getElementById('root')!).render(
    <StrictMode>
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router} />
        <Toasts />
      </QueryClientProvider>
    </StrictMode>,
  );
}
