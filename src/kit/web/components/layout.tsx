import { type CSSProperties, type ReactNode, useEffect, useRef } from 'react';
import { Link, useLocation } from 'react-router';

import styles from './layout.module.css';

interface PageHeaderProps {
  title: ReactNode;
  /** One line under the title. */
  subtitle?: ReactNode;
  actions?: ReactNode;
  /** Stays visible while the page is scrolled. */
  sticky?: boolean;
}

/** The header of a page: title, subtitle and actions. */
export function PageHeader({ title, subtitle, actions, sticky = false }: PageHeaderProps) {
  return (
    <header className={sticky ? `${styles.pageHeader} ${styles.sticky}` : styles.pageHeader}>
      <div className={styles.titles}>
        <h1 tabIndex={-1}>{title}</h1>
        {subtitle === undefined ? null : <div className={styles.subtitle}>{subtitle}</div>}
      </div>
      {actions === undefined ? null : <div className={styles.actions}>{actions}</div>}
    </header>
  );
}

interface PanelProps {
  title?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
  /** Content that reaches the panel's edges, such as a table. */
  flush?: boolean;
}

/** A titled part of a page. */
export function Panel({ title, actions, children, flush = false }: PanelProps) {
  return (
    <section className={styles.panel}>
      {title === undefined ? null : (
        <header className={styles.panelHead}>
          <h2>{title}</h2>
          {actions === undefined ? null : <div className={styles.actions}>{actions}</div>}
        </header>
      )}
      <div className={flush ? styles.flush : styles.panelBody}>{children}</div>
    </section>
  );
}

/** Panels side by side, each at least `min` wide; stacked in a narrow window. */
export function Columns({ min, children }: { min: string; children: ReactNode }) {
  return (
    <div className={styles.columns} style={{ '--column-min': min } as CSSProperties}>
      {children}
    </div>
  );
}

/** A link of a navigation. */
export interface NavItem {
  to: string;
  label: ReactNode;
  /** The paths of further pages that belong to it. */
  also?: readonly string[];
}

/** The link whose pages the path is one of. Of several, such as a list and one of its pages, it is the longest. */
function currentOf(links: readonly NavItem[], path: string): NavItem | undefined {
  const lengthOf = ({ to, also = [] }: NavItem) =>
    Math.max(...[to, ...also].map((start) => (path === start || path.startsWith(`${start}/`) ? start.length : -1)));
  return links.filter((link) => lengthOf(link) >= 0).sort((one, other) => lengthOf(other) - lengthOf(one))[0];
}

interface NavProps {
  label: string;
  className: string | undefined;
  links: readonly NavItem[];
}

/** A navigation with the link of the current page marked, to which it scrolls sideways where it is wider than the window. */
export function Nav({ label, className, links }: NavProps) {
  const nav = useRef<HTMLElement>(null);
  const { pathname } = useLocation();
  const current = currentOf(links, pathname);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the mark depends on the path.
  useEffect(() => {
    nav.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [pathname]);
  return (
    <nav ref={nav} className={className} aria-label={label}>
      {links.map((link) => (
        <Link key={link.to} to={link.to} aria-current={link === current ? 'page' : undefined}>
          {link.label}
        </Link>
      ))}
    </nav>
  );
}

/** Links between the pages of a resource. */
export const PageTabs = ({ label, links }: Omit<NavProps, 'className'>) => <Nav className={styles.tabs} label={label} links={links} />;

interface StatItem {
  label: string;
  value: ReactNode;
  unit?: string;
  note?: ReactNode;
}

/** Figures side by side, each at least `min` wide, with its unit. */
export function Stats({ items, min = '9rem' }: { items: readonly StatItem[]; min?: string }) {
  return (
    <dl className={`${styles.stats} tabular`} style={{ '--stat-min': min } as CSSProperties}>
      {items.map(({ label, value, unit, note }) => (
        <div key={label} className={styles.stat}>
          <dt>{label}</dt>
          <dd>
            <span className={styles.figure}>{value}</span>
            {unit === undefined ? null : <span className={styles.unit}> {unit}</span>}
            {note === undefined ? null : <span className={styles.note}>{note}</span>}
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** A region that scrolls sideways, so that the page does not, and that can be focused by keyboard. */
export function ScrollX({ label, children }: { label: string; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard (WCAG 2.1.1).
    <section className={styles.scrollX} aria-label={label} tabIndex={0}>
      {children}
    </section>
  );
}
