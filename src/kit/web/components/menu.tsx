import { Menu as AriakitMenu, MenuButton, MenuItem, MenuProvider } from '@ariakit/react';
import type { LucideIcon } from 'lucide-react';
import type { ReactNode } from 'react';

import { buttonClass } from './button.tsx';
import styles from './menu.module.css';

interface MenuEntry {
  label: string;
  icon?: LucideIcon;
  danger?: boolean;
  onSelect: () => void;
}

interface MenuProps {
  label: string;
  icon: LucideIcon;
  entries: readonly MenuEntry[];
  /** What stands before the actions. */
  about?: ReactNode;
}

/** A button that opens a menu of actions. */
export function Menu({ label, icon: Icon, entries, about }: MenuProps) {
  return (
    <MenuProvider placement="bottom-end">
      <MenuButton className={buttonClass('quiet', 'square')} aria-label={label}>
        <Icon size={16} aria-hidden="true" />
      </MenuButton>
      <AriakitMenu gutter={4} className={styles.menu!} portal unmountOnHide>
        {about === undefined ? null : <div className={styles.about!}>{about}</div>}
        {entries.map(({ label: text, icon: EntryIcon, danger, onSelect }) => (
          <MenuItem key={text} className={danger ? `${styles.item} ${styles.danger}` : styles.item!} onClick={onSelect}>
            {EntryIcon === undefined ? null : <EntryIcon size={15} aria-hidden="true" />}
            {text}
          </MenuItem>
        ))}
      </AriakitMenu>
    </MenuProvider>
  );
}
