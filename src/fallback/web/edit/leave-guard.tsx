import { useBeforeUnload, useBlocker } from 'react-router';

import { Button } from '../../../kit/web/components/button.tsx';
import { Dialog } from '../../../kit/web/components/dialog.tsx';

/** Asks before leaving a page with unsaved changes. */
export function LeaveGuard({ isUnsaved }: { isUnsaved: () => boolean }) {
  const blocker = useBlocker(({ currentLocation, nextLocation }) => isUnsaved() && currentLocation.pathname !== nextLocation.pathname);
  useBeforeUnload((event) => {
    if (isUnsaved()) event.preventDefault();
  });
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
