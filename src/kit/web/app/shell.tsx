import { Contrast, KeyRound, Moon, Sun } from 'lucide-react';
import { Activity, type ReactNode, useEffect, useRef } from 'react';
import { Link, Outlet, ScrollRestoration, useLocation } from 'react-router';

import { Callout } from '../components/feedback.tsx';
import { Nav, type NavItem } from '../components/layout.tsx';
import { Menu } from '../components/menu.tsx';
import icon from '../icon.svg';
import { chooseScheme, useScheme } from '../scheme.ts';
import { queryClient } from './queries.ts';
import { setKey, useHasKey, useKeyWanted } from './session.ts';
import styles from './shell.module.css';
import { connected } from './transport.ts';

interface ShellProps {
  /** The name of the application, after that of the product. */
  name: string;
  links: readonly NavItem[];
  /** What stands before the menus. */
  tools?: ReactNode;
  /** The menu of whom the page is shown to; by default that of the key. */
  account?: ReactNode;
  /** Shown instead of the page when a key is needed. */
  keyForm: ReactNode;
}

/** More links than this do not fit beside the name in a window of 1,024 pixels. */
const manyLinks = 6;

/** The frame of every page: navigation, the state of the connection, and the form that asks for a key. */
export function Shell({ name, links, tools, account, keyForm }: ShellProps) {
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
      <header className={links.length > manyLinks ? `${styles.bar} ${styles.many}` : styles.bar}>
        <Link to={links[0]?.to ?? '/'} className={styles.brand}>
          <img src={icon} width={20} height={20} alt="" />
          <span>
            Baton <span className={styles.product}>{name}</span>
          </span>
        </Link>
        {wanted ? null : <Nav className={styles.nav} label="Main" links={links} />}
        <div className={styles.tools}>
          {tools}
          <SchemeMenu />
          {account ?? <KeyMenu />}
        </div>
      </header>
      <div role="status" aria-live="polite">
        {isConnected ? null : (
          <div className={styles.notice}>
            <Callout tone="warn" title="The service can't be reached.">
              This page may be out of date. It tries again by itself.
            </Callout>
          </div>
        )}
      </div>
      <main id="content" ref={main} className={styles.main} tabIndex={-1}>
        {wanted ? keyForm : null}
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
