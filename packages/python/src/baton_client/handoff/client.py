"""The clients of the handoff service."""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from .. import approvals, worker
from ..events import Event, event_of, query_of
from ._aio import Operations as AsyncOperations
from ._sync import Operations

if TYPE_CHECKING:
    from typing_extensions import ParamSpec, Unpack

    Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


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

        While the service is unavailable it tries on, also before the first connection.

        Args:
            subscribe: channels: `status:<status>`, `packet:<id>`, `agent:<id>`; by default all events of the tenant.
            last_event_id: the `id` of the last event seen: the events after it come first.
        """
        for sent in self._resumed("/events", query_of(subscribe), last_event_id):
            event = event_of(sent)
            if event is not None:
                yield event

    def approve(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        call_id: str | None = None,
        **options: Unpack[approvals.ApprovalOptions],
    ) -> approvals.ActionDecision:
        """Asks a person or a policy about a tool call, and waits for the decision.

        The same agent and `call_id` again, also by another process, gets the decision of its first question. A question
        that is over without a decision, and an approval that has expired, is asked anew. In a worker's handler the
        `call_id` is by default made from the packet and a count within its run.

        Args:
            tool: the tool.
            arguments: the arguments of the call.
            call_id: the id of the call, which is the same when the program is started over.
            options: `agent`, `reason`, `title`, `description`, `schema`, `decisions`, `valid_seconds`, `responder`,
                `timeout` and others: see `baton_client.approvals.ApprovalOptions`.

        Raises:
            NoAnswer: if nobody decides within `timeout` seconds, or the packet ends before.
            CallChanged: if the call was asked about with another tool or other arguments.
        """
        call = approvals.call_of(tool, arguments, call_id, self._agent_id, options)
        decision: approvals.ActionDecision = approvals.drive(self, approvals.deciding(call))
        return decision

    def requires_approval(
        self,
        *,
        tool: str | None = None,
        call_id: str | Callable[..., str] | None = None,
        **options: Unpack[approvals.ApprovalOptions],
    ) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
        """A decorator: the function asks, waits, and runs once with the approved arguments.

        The id of a call is that of the framework, from an argument that has `tool_call_id` or is called so, or the
        keyword `call_id` of the call; an argument that gives it is not shown. Called again with the same id, also by
        another process, the function returns the result of its first run. If a process died in between, a person is
        asked again, and told when it began. Where a person answers instead of the tool, the answer is returned.

        Args:
            tool: what people see; the function's name by default.
            call_id: the id, or a function of the arguments that returns it.
            options: as for `approve`.

        Raises:
            ActionRejected: if the action is rejected, with what was said.
            ActionFailed: if the first run with this id raised an error.
            NoAnswer: if nobody decides within `timeout` seconds.
        """

        def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
            if inspect.iscoroutinefunction(function):
                raise TypeError(f"{function.__name__} is a coroutine function: use AsyncHandoff.")
            known = approvals.Tool(function, tool, call_id)

            @functools.wraps(function)
            def approved(*args: Any, **kwargs: Any) -> Any:
                call, bound = known.call(args, kwargs, self._agent_id, options)
                return approvals.drive(self, approvals.executing(call, bound))

            return approved

        return decorate

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

    async def approve(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        call_id: str | None = None,
        **options: Unpack[approvals.ApprovalOptions],
    ) -> approvals.ActionDecision:
        """As `Handoff.approve`."""
        call = approvals.call_of(tool, arguments, call_id, self._agent_id, options)
        decision: approvals.ActionDecision = await approvals.drive_async(self, approvals.deciding(call))
        return decision

    def requires_approval(
        self,
        *,
        tool: str | None = None,
        call_id: str | Callable[..., str] | None = None,
        **options: Unpack[approvals.ApprovalOptions],
    ) -> Callable[[Callable[Parameters, Awaitable[Result]]], Callable[Parameters, Awaitable[Result]]]:
        """As `Handoff.requires_approval`, for a coroutine function."""

        def decorate(function: Callable[Parameters, Awaitable[Result]]) -> Callable[Parameters, Awaitable[Result]]:
            known = approvals.Tool(function, tool, call_id)

            @functools.wraps(function)
            async def approved(*args: Any, **kwargs: Any) -> Any:
                call, bound = known.call(args, kwargs, self._agent_id, options)
                return await approvals.drive_async(self, approvals.executing(call, bound))

            return approved

        return decorate

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
