import { Contrast, KeyRound, Moon, Sun } from 'lucide-react';
import { Activity, useEffect, useRef } from 'react';
import { NavLink, Outlet, ScrollRestoration, useLocation } from 'react-router';

import { Badge, Callout } from '../../kit/web/components/feedback.tsx';
import { Menu } from '../../kit/web/components/menu.tsx';
import { chooseScheme, useScheme } from '../../kit/web/scheme.ts';
import { connected } from './data/api.ts';
import { queryClient, useAccess } from './data/queries.ts';
import { setKey, useHasKey, useKeyWanted } from './data/session.ts';
import icon from './icon.svg';
import { KeyForm } from './parts/key-form.tsx';
import styles from './shell.module.css';

/** The frame of every page: navigation, the state of the connection, and the form that asks for a key. */
export function Shell() {
  const wanted = useKeyWanted();
  const isConnected = connected.use();
  const { pathname } = useLocation();
  const main = useRef<HTMLElement>(null);

  // Moves the focus to the heading of a new page (WCAG 2.4.3), but not of the first one.
  const first = useRef(true);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new path means a new page.
  useEffect(() => {
    if (first.current) first.current = false;
    else if (main.current !== null) return focusHeading(main.current);
    return undefined;
  }, [pathname]);

  return (
    <div className={styles.shell}>
      <a href="#content" className={styles.skip}>
        Skip to content
      </a>
      <header className={styles.bar}>
        <NavLink to="/chains" className={styles.brand!}>
          <img src={icon} width={20} height={20} alt="" />
          <span>
            Baton <span className={styles.product}>fallback chains</span>
          </span>
        </NavLink>
        <nav className={styles.nav} aria-label="Main">
          <NavLink to="/chains">Chains</NavLink>
          <NavLink to="/import">Import</NavLink>
          <NavLink to="/templates">Templates</NavLink>
        </nav>
        <div className={styles.tools}>
          <AccessBadge />
          <SchemeMenu />
          <KeyMenu />
        </div>
      </header>
      <div role="status" aria-live="polite">
        {isConnected ? null : (
          <div className={styles.notice}>
            <Callout tone="warn" title="The service can't be reached.">
              What is shown may be out of date. The page tries again by itself.
            </Callout>
          </div>
        )}
      </div>
      <main id="content" ref={main} className={styles.main} tabIndex={-1}>
        {wanted ? <KeyForm /> : null}
        {/* Keeps the state of edits while the key is asked for again. */}
        <Activity mode={wanted ? 'hidden' : 'visible'}>
          <Outlet />
        </Activity>
      </main>
      <ScrollRestoration />
    </div>
  );
}

/** Puts the focus on the page's heading: of a page that is still being loaded as soon as it has one, unless the user was faster. */
function focusHeading(page: HTMLElement): (() => void) | undefined {
  const heading = () => page.querySelector<HTMLElement>('h1');
  const focus = (element: HTMLElement) => element.focus({ preventScroll: true });
  focus(heading() ?? page);
  if (heading() !== null) return undefined;
  const observer = new MutationObserver(() => {
    const found = heading();
    if (found === null) return;
    observer.disconnect();
    if (document.activeElement === page || document.activeElement === document.body) focus(found);
  });
  observer.observe(page, { childList: true, subtree: true });
  return () => observer.disconnect();
}

function AccessBadge() {
  const access = useAccess();
  if (access === undefined || access.may_write) return null;
  return <Badge tone="info">Read only</Badge>;
}

function SchemeMenu() {
  const scheme = useScheme();
  const icon = { system: Contrast, light: Sun, dark: Moon }[scheme];
  return (
    <Menu
      label="Colour scheme"
      icon={icon}
      entries={[
        { label: 'As the system', icon: Contrast, onSelect: () => chooseScheme('system') },
        { label: 'Light', icon: Sun, onSelect: () => chooseScheme('light') },
        { label: 'Dark', icon: Moon, onSelect: () => chooseScheme('dark') },
      ]}
    />
  );
}

function KeyMenu() {
  const hasKey = useHasKey();
  if (!hasKey) return null;
  const forget = () => {
    setKey(null);
    // Without a key no data may be shown.
    void queryClient.resetQueries();
  };
  return <Menu label="API key" icon={KeyRound} entries={[{ label: 'Forget the key', onSelect: forget }]} />;
}
