import { lazy, type ReactNode, Suspense, useState } from 'react';

export interface DialogProps {
  open: boolean;
  onClose: () => void;
  title: string;
  children: ReactNode;
  /** Buttons, the safe one first. */
  actions?: ReactNode;
  wide?: boolean;
  /** Stays open when something outside of it is clicked or focused. */
  firm?: boolean;
}

const Modal = lazy(async () => ({ default: (await import('./modal.tsx')).Modal }));

/** A modal dialog: focus stays inside it, Escape closes it, and focus returns to where it was. It is loaded when one opens first. */
export function Dialog(props: DialogProps) {
  const [isUsed, setUsed] = useState(props.open);
  if (props.open && !isUsed) setUsed(true);
  return isUsed ? (
    <Suspense fallback={null}>
      <Modal {...props} />
    </Suspense>
  ) : null;
}
