import { type CSSProperties, type ReactNode, useEffect, useRef } from 'react';
import { NavLink, useLocation } from 'react-router';

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

/** A navigation that scrolls sideways where it is wider than the window, to the link of the current page. */
export function ScrollNav({ label, className, children }: { label: string; className: string | undefined; children: ReactNode }) {
  const nav = useRef<HTMLElement>(null);
  const { pathname } = useLocation();
  // biome-ignore lint/correctness/useExhaustiveDependencies: the mark depends on the path.
  useEffect(() => {
    nav.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [pathname]);
  return (
    <nav ref={nav} className={className} aria-label={label}>
      {children}
    </nav>
  );
}

/** Links between the pages of a resource, with the current one marked. */
export function PageTabs({ label, tabs }: { label: string; tabs: readonly { to: string; label: string; end?: boolean }[] }) {
  return (
    <ScrollNav className={styles.tabs} label={label}>
      {tabs.map(({ to, label: text, end = false }) => (
        <NavLink key={to} to={to} end={end} className={styles.tab!}>
          {text}
        </NavLink>
      ))}
    </ScrollNav>
  );
}

export interface StatItem {
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
