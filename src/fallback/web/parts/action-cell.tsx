import { CircleStop, type LucideIcon, Redo2, RotateCw, Undo2 } from 'lucide-react';

import styles from './action-cell.module.css';

const icons: Record<string, LucideIcon> = { retry: RotateCw, failover: Redo2, fail: CircleStop, serve: Undo2 };

/** An action with its icon: retry, failover, fail, or serve. */
export function Action({ action, text }: { action: string; text?: string }) {
  const Icon = icons[action];
  return (
    <span className={styles.action} data-action={action}>
      {Icon === undefined ? null : <Icon size={13} aria-hidden="true" />}
      {text ?? action}
    </span>
  );
}
