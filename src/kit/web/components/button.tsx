import type { LucideIcon } from 'lucide-react';
import type { ButtonHTMLAttributes, Ref } from 'react';
import { Link } from 'react-router';

import styles from './button.module.css';

type Look = 'primary' | 'plain' | 'quiet' | 'danger' | 'link';

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  look?: Look;
  icon?: LucideIcon;
  /** An action is in progress: the button keeps its width and focus and does nothing. */
  busy?: boolean;
  ref?: Ref<HTMLButtonElement>;
}

/** The classes of a button; a `square` one has an icon and no text. */
export const buttonClass = (look: Look, shape: 'text' | 'square' = 'text'): string =>
  [styles.button, styles[look], shape === 'square' ? styles.square : ''].join(' ');

/**
 * A button. With an icon and no children it needs an `aria-label`. With `aria-disabled` it does nothing and keeps the focus,
 * which `disabled` would lose where the button's own press made it unavailable.
 */
export function Button({ look = 'plain', icon: Icon, busy = false, children, onClick, type = 'button', ...rest }: ButtonProps) {
  const isOff = busy || rest['aria-disabled'] === true;
  return (
    <button
      {...rest}
      type={type}
      className={buttonClass(look, children === undefined ? 'square' : 'text')}
      aria-disabled={isOff || undefined}
      aria-busy={busy || undefined}
      onClick={isOff ? (event) => event.preventDefault() : onClick}
    >
      {Icon === undefined ? null : <Icon size={15} aria-hidden="true" />}
      {children}
    </button>
  );
}

/** A link that looks like a button, for navigation. */
export function LinkButton({ to, look = 'plain', icon: Icon, children }: Pick<ButtonProps, 'look' | 'icon' | 'children'> & { to: string }) {
  return (
    <Link to={to} className={buttonClass(look)}>
      {Icon === undefined ? null : <Icon size={15} aria-hidden="true" />}
      {children}
    </Link>
  );
}
