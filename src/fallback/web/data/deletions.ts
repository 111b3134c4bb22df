import { toast } from '../../../kit/web/components/toasts.tsx';
import { sharedValue } from '../../../kit/web/shared-value.ts';
import { api } from './api.ts';
import { useDeleteChain } from './queries.ts';

/** How long a deletion can be undone, in milliseconds; hovering over its message pauses the time. */
const undoMs = 8000;

/** Chains whose deletion can still be undone. */
const pending = new Set<string>();
/** The chains that the list does not show: those above, and those being deleted. */
const hidden = sharedValue<readonly string[]>([]);

// Closing the page confirms pending deletions: they are sent, and the browser completes them.
addEventListener('pagehide', () => {
  // Nobody sees a failure; if the page is restored from the browser's cache, it shows the chain again.
  for (const id of pending)
    api()
      .deleteChain({ params: { id } })
      .catch(() => undefined);
  pending.clear();
});

/** The ids of hidden chains, which are about to be deleted. */
export const useHidden = hidden.use;

/** Deletes a chain when its message disappears, unless the user undoes it. */
export function useDelete(): (chain: { id: string; name: string }) => void {
  const remove = useDeleteChain();
  return ({ id, name }) => {
    const show = () => hidden.set(hidden.get().filter((other) => other !== id));
    pending.add(id);
    hidden.set([...hidden.get(), id]);
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
