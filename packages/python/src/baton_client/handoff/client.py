"""The clients of the handoff service."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Sequence

from .. import worker
from ..events import Event, event_of, query_of
from ._aio import Operations as AsyncOperations
from ._sync import Operations


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class Handoff(Operations):
    """The handoff packet service: one method for each operation, the stream of events, and a worker."""

    _root_suffix = "/api/v1"

    def events(
        self, *, subscribe: str | Sequence[str] | None = None, last_event_id: str | None = None
    ) -> Iterator[Event]:
        """Events as they happen. A broken stream is opened again after the last event, so each arrives exactly once.

        Args:
            subscribe: channels: `status:<status>`, `packet:<id>`, `agent:<id>`; by default all events of the tenant.
            last_event_id: the `id` of the last event seen: the events after it come first.
        """
        for sent in self._resumed("/events", query_of(subscribe), last_event_id):
            event = event_of(sent)
            if event is not None:
                yield event

    def work(
        self,
        agent_id: str,
        handler: worker.Handler,
        *,
        lease_seconds: int = 60,
        concurrency: int = 1,
        stop: threading.Event | None = None,
        grace_seconds: float = 10.0,
    ) -> None:
        """Claims the packets for an agent and hands each to `handler(ctx)`, in a thread, until it is stopped.

        The lease is renewed meanwhile. The packet ends as `completed`, with the PATCH that the handler returns, or as
        `failed` with its exception. On SIGTERM, SIGINT or `stop`, packets in progress have `grace_seconds` to end, and
        are given back afterwards. If the process dies, another worker gets the packet when its lease expires.

        Raises:
            RuntimeError: if an event loop runs in this thread, as in a notebook.
        """
        if _is_in_loop():
            raise RuntimeError(
                "An event loop runs in this thread, as in a notebook: use `await AsyncHandoff(...).work(...)`, "
                "or run `work` in a thread of its own."
            )

        async def main() -> None:
            stopping = asyncio.Event()
            loop = asyncio.get_running_loop()
            async with AsyncHandoff(
                self._base_url,
                self._api_key,
                self._agent_id,
                timeout=self._timeout,
                retries=self._retries,
                max_wait=self._max_wait,
            ) as client:

                async def watch(given: threading.Event) -> None:
                    while not given.is_set():
                        await asyncio.sleep(0.05)
                    stopping.set()

                watching = None if stop is None else loop.create_task(watch(stop))
                try:
                    await worker.run_worker(
                        client,
                        agent_id,
                        lambda task: worker.in_thread(handler, task),
                        lease_seconds=lease_seconds,
                        concurrency=concurrency,
                        stop=stopping,
                        grace_seconds=grace_seconds,
                    )
                finally:
                    if watching is not None:
                        watching.cancel()

        asyncio.run(main())


class AsyncHandoff(AsyncOperations):
    """The same over asyncio."""

    _root_suffix = "/api/v1"

    async def events(
        self, *, subscribe: str | Sequence[str] | None = None, last_event_id: str | None = None
    ) -> AsyncIterator[Event]:
        """As `Handoff.events`."""
        async for sent in self._resumed("/events", query_of(subscribe), last_event_id):
            event = event_of(sent)
            if event is not None:
                yield event

    async def work(
        self,
        agent_id: str,
        handler: worker.AsyncHandler,
        *,
        lease_seconds: int = 60,
        concurrency: int = 1,
        stop: asyncio.Event | None = None,
        grace_seconds: float = 10.0,
    ) -> None:
        """As `Handoff.work`; the handler is a coroutine function."""
        await worker.run_worker(
            self,
            agent_id,
            lambda task: worker.in_coroutine(handler, task),
            lease_seconds=lease_seconds,
            concurrency=concurrency,
            stop=stop or asyncio.Event(),
            grace_seconds=grace_seconds,
        )
