import { useEffect } from 'react';

/** The title in the document, which names the application and ends the title of every page. */
const application = document.title;

/** Sets the page's title in the browser's tab and history. */
export function useTitle(title: string | undefined): void {
  useEffect(() => {
    document.title = title ? `${title} · ${application}` : application;
  }, [title]);
}
