import type { ChangeEvent, CSSProperties, ReactNode, Ref } from 'react';

import styles from './form.module.css';

interface FormProps {
  onSubmit: () => void;
  children: ReactNode;
  ref?: Ref<HTMLFormElement>;
}

/** A form whose errors are shown by the page, not by the browser. */
export function Form({ onSubmit, children, ref }: FormProps) {
  return (
    <form
      ref={ref}
      className={styles.form}
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit();
      }}
    >
      {children}
    </form>
  );
}

/** Fields side by side, each at least `min` wide. */
export function Fields({ min = '13rem', children }: { min?: string; children: ReactNode }) {
  return (
    <div className={styles.fields} style={{ '--field-min': min } as CSSProperties}>
      {children}
    </div>
  );
}

type Control = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;

/** The fields of `T` that are strings. */
type TextName<T> = { [Name in keyof T]: T[Name] extends string ? Name : never }[keyof T] & string;

/**
 * Binds controls to the strings of a draft: `<TextField label="Name" {...bound('name')} />`. `onLeave` is called with each field that
 * the user leaves. A field of one of several strings is bound to a control that offers only these.
 */
export function bind<T>(
  draft: T,
  onChange: (changes: Partial<T>) => void,
  faultOf: (name: TextName<T>) => string | undefined = () => undefined,
  onLeave?: (name: TextName<T>) => void,
) {
  return (name: TextName<T>) => ({
    value: draft[name] as string,
    onChange: (event: ChangeEvent<Control>) => onChange({ [name]: event.target.value } as unknown as Partial<T>),
    error: faultOf(name),
    ...(onLeave === undefined ? {} : { onBlur: () => onLeave(name) }),
  });
}
