import { useEffect } from 'react';

/** Names the page in the browser's tab and history. */
export function useTitle(title: string | undefined): void {
  useEffect(() => {
    document.title = title === undefined ? 'Fallback chains · Baton' : `${title} · Fallback chains · Baton`;
  }, [title]);
}
