import { Dialog as AriakitDialog, DialogDismiss, DialogHeading } from '@ariakit/react';
import { X } from 'lucide-react';

import { buttonClass } from './button.tsx';
import styles from './dialog.module.css';
import type { DialogProps } from './dialog.tsx';

/** The dialog itself: focus stays inside it, Escape closes it, and focus returns to where it was. */
export function Modal({ open, onClose, title, children, actions, wide = false, firm = false }: DialogProps) {
  return (
    <AriakitDialog
      open={open}
      onClose={onClose}
      className={wide ? `${styles.dialog} ${styles.wide}` : styles.dialog!}
      backdrop={<div className={styles.backdrop} />}
      hideOnInteractOutside={!firm}
      unmountOnHide
    >
      <header className={styles.head}>
        <DialogHeading className={styles.title}>{title}</DialogHeading>
        <DialogDismiss className={buttonClass('quiet', 'square')} aria-label="Close">
          <X size={16} aria-hidden="true" />
        </DialogDismiss>
      </header>
      <div className={styles.body}>{children}</div>
      {actions === undefined ? null : <footer className={styles.actions}>{actions}</footer>}
    </AriakitDialog>
  );
}
