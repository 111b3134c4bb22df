import { useEffect } from 'react';
import { useBlocker } from 'react-router';

import { Button } from '../../../kit/web/components/button.tsx';
import { Dialog } from '../../../kit/web/components/dialog.tsx';

/** Asks before leaving a page with unsaved changes. */
export function LeaveGuard({ isUnsaved }: { isUnsaved(): boolean }) {
  const blocker = useBlocker(({ currentLocation, nextLocation }) => isUnsaved() && currentLocation.pathname !== nextLocation.pathname);
  useEffect(() => {
    const warn = (event: BeforeUnloadEvent) => {
      if (isUnsaved()) event.preventDefault();
    };
    addEventListener('beforeunload', warn);
    return () => removeEventListener('beforeunload', warn);
  }, [isUnsaved]);
  if (blocker.state !== 'blocked') return null;
  return (
    <Dialog
      open
      onClose={() => blocker.reset()}
      title="Leave without saving?"
      actions={
        <>
          <Button onClick={() => blocker.reset()}>Continue editing</Button>
          <Button look="danger" onClick={() => blocker.proceed()}>
            Leave
          </Button>
        </>
      }
    >
      <p>Your changes are not saved and will be lost.</p>
    </Dialog>
  );
}
