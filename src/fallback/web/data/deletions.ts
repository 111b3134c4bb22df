import { useSyncExternalStore } from 'react';

import { useToast } from '../../../kit/web/components/toasts.tsx';
import { api } from './api.ts';
import { useDeleteChain } from './queries.ts';

/** How long a deletion can be undone, in milliseconds; hovering over its message pauses the time. */
const undoMs = 8000;

const listeners = new Set<() => void>();
/** Chains whose deletion can still be undone. */
const pending = new Set<string>();
/** Hidden chains: those above, and those being deleted. */
let hidden: readonly string[] = [];

function setHidden(ids: readonly string[]): void {
  hidden = ids;
  for (const tell of listeners) tell();
}

// Closing the page confirms pending deletions: they are sent, and the browser completes them.
addEventListener('pagehide', () => {
  for (const id of pending) void api().deleteChain({ params: { id } });
  pending.clear();
});

/** The ids of hidden chains, which are about to be deleted. */
export const useHidden = (): readonly string[] =>
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => hidden,
  );

/** Deletes a chain when its message disappears, unless the user undoes it. */
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
        // It was already sent if the page was left and restored from the browser's cache.
        if (!pending.delete(id)) return show();
        remove
          .mutateAsync(id)
          .catch((error: Error) => toast({ text: `${name} was not deleted: ${error.message}`, tone: 'bad', durationMs: 12_000 }))
          .finally(show);
      },
    });
  };
}
