import { useSyncExternalStore } from 'react';

import { useToast } from '../../../kit/web/components/toasts.tsx';
import { api } from './api.ts';
import { useDeleteChain } from './queries.ts';

/** How long a deletion can be taken back, in milliseconds; longer while its message is pointed at. */
const undoMs = 8000;

const listeners = new Set<() => void>();
/** Chains whose deletion can still be taken back. */
const pending = new Set<string>();
/** Chains that are not shown: those above, and those whose deletion is on its way. */
let hidden: readonly string[] = [];

function setHidden(ids: readonly string[]): void {
  hidden = ids;
  for (const tell of listeners) tell();
}

// Who closes the page meant what they did: the deletion goes out, and the browser finishes it behind the page.
addEventListener('pagehide', () => {
  for (const id of pending) void api().deleteChain({ params: { id } });
  pending.clear();
});

/** The ids of chains that are about to be deleted, and so are not shown. */
export const useHidden = (): readonly string[] =>
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => hidden,
  );

/** Deletes a chain when its message goes, unless that is taken back. */
export function useDelete(): (chain: { id: string; name: string }) => void {
  const toast = useToast();
  const remove = useDeleteChain();
  return ({ id, name }) => {
    const show = () => setHidden(hidden.filter((other) => other !== id));
    pending.add(id);
    setHidden([...hidden, id]);
    toast({
      text: `${name} is deleted.`,
      durationMs: undoMs,
      action: {
        label: 'Undo',
        onSelect() {
          pending.delete(id);
          show();
        },
      },
      onGone() {
        // It has gone out already where the page was left and came back from the browser's cache.
        if (!pending.delete(id)) return show();
        remove
          .mutateAsync(id)
          .catch((error: Error) => toast({ text: `${name} was not deleted: ${error.message}`, tone: 'bad', durationMs: 12_000 }))
          .finally(show);
      },
    });
  };
}
