import { useEffect } from 'react';

/** Sets the page's title in the browser's tab and history. */
export function useTitle(title: string | undefined): void {
  useEffect(() => {
    document.title = title === undefined ? 'Fallback chains · Baton' : `${title} · Fallback chains · Baton`;
  }, [title]);
}
