import { useEffect } from 'react';

import { queryClient } from '../../../kit/web/app/queries.ts';
import { useHasAccess, useKeyWanted } from '../../../kit/web/app/session.ts';
import { sharedValue } from '../../../kit/web/shared-value.ts';
import type { StreamEvent } from '../../client/client.ts';
import type { PacketSummary } from '../../model/packet.ts';
import { allows } from '../../rules/packet-life.ts';
import { api } from './api.ts';
import { inboxKey, inOrder, maxQuestions } from './queries.ts';

/** How often lists are read again at most while events arrive, in milliseconds. The inbox and open packets follow at once. */
const listsEveryMs = 10_000;

/** Whether the stream of events is open. */
export const live = sharedValue(false);

/** Follows the tenant's events while a key is known, and keeps what is shown up to date. */
export function useLive(onQuestion: (packet: PacketSummary) => void): void {
  const hasAccess = useHasAccess();
  const wanted = useKeyWanted();
  const enabled = hasAccess && !wanted;
  useEffect(() => {
    if (!enabled) return;
    const stop = new AbortController();
    const lists = throttle(() => {
      void queryClient.invalidateQueries({ queryKey: ['packets', 'list'] });
      void queryClient.invalidateQueries({ queryKey: ['packets', 'board'] });
      void queryClient.invalidateQueries({ queryKey: ['agents'] });
      void queryClient.invalidateQueries({ queryKey: ['stats'] });
    }, listsEveryMs);
    const client = api({
      onStep: ({ kind }) => {
        live.set(kind === 'answer');
        // Questions may have been asked before the stream was open.
        if (kind === 'answer') void queryClient.invalidateQueries({ queryKey: inboxKey });
      },
    });
    const follow = async () => {
      for await (const event of client.events({ signal: stop.signal })) {
        if ('packet_id' in event) applyEvent(event, onQuestion);
        else void queryClient.invalidateQueries();
        lists.call();
      }
    };
    // The page was left, or the key may not read events. Polling continues.
    follow().catch(() => live.set(false));
    return () => {
      stop.abort();
      lists.stop();
      live.set(false);
    };
  }, [enabled, onQuestion]);
}

/** Adds the packet of an event to the inbox or removes it, and reads the packet again if it is shown. */
function applyEvent({ packet_id: id, data }: StreamEvent, onQuestion: (packet: PacketSummary) => void): void {
  void queryClient.invalidateQueries({ queryKey: ['packets', id] });
  void queryClient.invalidateQueries({ queryKey: ['chain'] });
  const shown = queryClient.getQueryData<PacketSummary[]>(inboxKey);
  const others = shown?.filter((packet) => packet.id !== id) ?? [];
  const isAsked = data !== null && allows(data, 'respond');
  if (isAsked && shown?.length === others.length) onQuestion(data);
  if (shown === undefined) return;
  // The oldest are shown. Of a full inbox, the question that takes the place of an answered one is not known here.
  if (!isAsked && shown.length === maxQuestions && others.length < maxQuestions) void queryClient.invalidateQueries({ queryKey: inboxKey });
  queryClient.setQueryData(inboxKey, isAsked ? inOrder([...others, data]).slice(0, maxQuestions) : others);
}

/** Limits work to once per interval: the first call does it at once, and later ones together at the end of the interval. */
function throttle(work: () => void, ms: number) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isWanted = false;
  const call = () => {
    isWanted = timer !== undefined;
    if (isWanted) return;
    work();
    timer = setTimeout(() => {
      timer = undefined;
      if (isWanted) call();
    }, ms);
  };
  return { call, stop: () => clearTimeout(timer) };
}
