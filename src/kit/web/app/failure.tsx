import { useRouteError } from 'react-router';

import { Button, LinkButton } from '../components/button.tsx';
import { Empty } from '../components/feedback.tsx';

/** The page for unknown paths. */
export function NotFound() {
  return (
    <Empty level={1} title="Page not found" actions={<LinkButton to="/">Go to the start</LinkButton>}>
      The address may be mistyped, or its resource was deleted.
    </Empty>
  );
}

/** What is shown in place of a page that failed. */
export function PageFailure() {
  const error = useRouteError();
  // The scripts and styles of a page are missing after an update of the service, and while the service can't be reached.
  // Chromium, Firefox, Safari and Vite each word it in their own way.
  const isChunk = error instanceof Error && /dynamically imported|module script|preload CSS/.test(error.message);
  return (
    <div role="alert">
      <Empty
        level={1}
        title={isChunk ? 'This page could not be loaded' : 'This page failed'}
        actions={<Button onClick={() => location.reload()}>Reload</Button>}
      >
        {isChunk
          ? "The service was updated, or it can't be reached. Reload the page."
          : error instanceof Error
            ? error.message
            : 'The cause is unknown.'}
      </Empty>
    </div>
  );
}
