import { useSyncExternalStore } from 'react';

import { useToast } from '../../../kit/web/components/toasts.tsx';
import { api } from './api.ts';
import { useDeleteChain } from './queries.ts';

/** How long a deletion can be taken back, in milliseconds. */
const undoMs = 8000;

const listeners = new Set<() => void>();
/** Chains that are to be deleted, and the timer of each. A chain keeps its id when its deletion is taken back. */
const pending = new Map<string, ReturnType<typeof setTimeout>>();
let hidden: readonly string[] = [];

function changed(): void {
  hidden = [...pending.keys()];
  for (const tell of listeners) tell();
}

// Who closes the page meant what they did: the deletion goes out, and the browser finishes it behind the page.
addEventListener('pagehide', () => {
  for (const [id, timer] of pending) {
    clearTimeout(timer);
    void api().deleteChain({ params: { id } });
  }
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

/** Deletes a chain in a few seconds, unless that is taken back. */
export function useDelete(): (chain: { id: string; name: string }) => void {
  const toast = useToast();
  const remove = useDeleteChain();
  return ({ id, name }) => {
    const finish = () => {
      remove.mutate(id, {
        onSettled: () => {
          pending.delete(id);
          changed();
        },
        onError: (error) => toast({ text: `${name} was not deleted: ${error.message}`, tone: 'bad', durationMs: 12_000 }),
      });
    };
    pending.set(id, setTimeout(finish, undoMs));
    changed();
    toast({
      text: `${name} is deleted.`,
      durationMs: undoMs,
      action: {
        label: 'Undo',
        onSelect() {
          clearTimeout(pending.get(id));
          pending.delete(id);
          changed();
        },
      },
    });
  };
}
