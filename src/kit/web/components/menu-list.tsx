import { Menu as AriakitMenu, MenuButton, MenuItem, MenuProvider } from '@ariakit/react';

import { buttonClass } from './button.tsx';
import styles from './menu.module.css';
import type { MenuProps } from './menu.tsx';

/** The button of a menu with the menu, which is open. */
export function MenuList({ label, icon: Icon, entries, about }: MenuProps) {
  return (
    <MenuProvider placement="bottom-end" defaultOpen>
      <MenuButton className={buttonClass('quiet', 'square')} aria-label={label}>
        <Icon size={16} aria-hidden="true" />
      </MenuButton>
      <AriakitMenu gutter={4} className={styles.menu!} portal unmountOnHide autoFocusOnShow>
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
