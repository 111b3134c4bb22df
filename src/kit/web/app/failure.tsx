import { useRouteError } from 'react-router';

import { Button, LinkButton } from '../components/button.tsx';
import { Callout, Empty } from '../components/feedback.tsx';

/** The page for unknown paths. */
export function NotFound() {
  return (
    <Empty level={1} title="Page not found" actions={<LinkButton to="/">Go to the start</LinkButton>}>
      The address may be mistyped, or its resource was deleted.
    </Empty>
  );
}

/** The page after an error in another page. */
export function PageFailure() {
  const error = useRouteError();
  // After an update of the service a chunk may be missing; reloading the page fetches the new one.
  const stale = error instanceof TypeError && /import|module/i.test(error.message);
  return (
    <main>
      <Callout
        tone="bad"
        alert
        title={stale ? 'The service was updated.' : 'This page failed.'}
        actions={<Button onClick={() => location.reload()}>Reload</Button>}
      >
        {stale ? 'Reload the page to use the new version.' : error instanceof Error ? error.message : 'The cause is unknown.'}
      </Callout>
    </main>
  );
}
