import type { LucideIcon } from 'lucide-react';
import { lazy, type ReactNode, Suspense, useState } from 'react';

import { buttonClass } from './button.tsx';

interface MenuEntry {
  label: string;
  icon?: LucideIcon;
  danger?: boolean;
  onSelect: () => void;
}

export interface MenuProps {
  label: string;
  icon: LucideIcon;
  entries: readonly MenuEntry[];
  /** What stands before the actions. */
  about?: ReactNode;
}

const loadList = () => import('./menu-list.tsx');
const MenuList = lazy(async () => ({ default: (await loadList()).MenuList }));

/** A button that opens a menu of actions. What shows the menu is loaded when it is needed first. */
export function Menu(props: MenuProps) {
  const [isUsed, setUsed] = useState(false);
  const button = <ClosedButton {...props} onOpen={() => setUsed(true)} />;
  return isUsed ? (
    <Suspense fallback={button}>
      <MenuList {...props} />
    </Suspense>
  ) : (
    button
  );
}

function ClosedButton({ label, icon: Icon, onOpen }: MenuProps & { onOpen: () => void }) {
  return (
    <button
      type="button"
      className={buttonClass('quiet', 'square')}
      aria-label={label}
      aria-haspopup="menu"
      aria-expanded={false}
      onPointerEnter={() => void loadList()}
      onClick={onOpen}
      onKeyDown={({ key }) => {
        if (key === 'ArrowDown' || key === 'ArrowUp') onOpen();
      }}
    >
      <Icon size={16} aria-hidden="true" />
    </button>
  );
}
