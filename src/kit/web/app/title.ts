import { createContext, useContext, useEffect } from 'react';

/** The name of the application, which ends the title of every page. */
export const Product = createContext('');

/** Sets the page's title in the browser's tab and history. */
export function useTitle(title: string | undefined): void {
  const product = useContext(Product);
  useEffect(() => {
    document.title = [title, product, 'Baton'].filter(Boolean).join(' · ');
  }, [title, product]);
}
