"""Workers: they claim packets, keep the leases while a handler works, and end the packets with what it returns."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import itertools
import logging
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from ._transport import json_of
from .errors import (
    BatonError,
    ConnectionFailed,
    LeaseLost,
    NoAnswer,
    NotFoundError,
    PayloadTooLargeError,
    PreconditionFailedError,
    RateLimitedError,
    RequestTimeout,
    ServerError,
    UnreadableAnswer,
    ValidationError,
)
from .handoff import types

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .handoff.client import AsyncHandoff

log = logging.getLogger("baton_client")
passing = (ConnectionFailed, RequestTimeout, ServerError, RateLimitedError, UnreadableAnswer)
"""Errors that end by themselves."""

Result = Mapping[str, Any] | None
"""The PATCH that ends the packet; its `status` is `completed` unless it says otherwise."""


_longest_error = 2000
"""The most characters of an error in a packet."""


@dataclass(frozen=True)
class Outcome:
    """What a handler returned or raised: anything, also `SystemExit`, `KeyboardInterrupt` and `CancelledError`."""

    result: object = None
    error: BaseException | None = None


class AskOptions(TypedDict, total=False):
    """What `ask` takes beside the question, its key and the time to wait."""

    reason: str | None
    options: Sequence[Any] | None
    strict_options: bool | None
    schema: Mapping[str, Any] | None
    action: types.Action | None
    """A tool call that is asked about; the answer has the `decision`. `requires_approval` executes it once."""
    responder: str | None
    exclude_source: bool | None
    require_verified: bool | None
    on_timeout: Literal["keep", "fail", "expire"] | None
    remind_after_seconds: int | None


class Task:
    """A claimed packet and its lease."""

    def __init__(self, client: AsyncHandoff, agent_id: str, packet: types.Packet, lease_seconds: int) -> None:
        self.client = client
        self.agent_id = agent_id
        self.packet = packet
        self.lease_seconds = lease_seconds
        self.lost = asyncio.Event()
        lease = packet["lease"]
        self.token = lease.get("token") if lease is not None else None
        self._asking = asyncio.Lock()
        self._asked = 0
        self._calls = itertools.count(1)

    def next_call_id(self) -> str:
        """The id of the next call that needs an approval: the packet's, with a count within this run of the handler."""
        return f"{self.packet['id']}:{next(self._calls)}"

    async def renew(self) -> None:
        """Renews the lease until it is lost: refused, or over while no renewal was answered."""
        now = asyncio.get_running_loop().time
        until = now() + self.lease_seconds
        pause = self.lease_seconds / 3
        while not self.lost.is_set():
            await asyncio.sleep(min(pause, max(0.0, until - now())))
            # The service counts from its answer: a lease counted from the request does not end too late here.
            began = now()
            try:
                await asyncio.wait_for(
                    self.client.renew_lease(self.packet["id"], lease_token=self.token, timeout=self.lease_seconds / 3),
                    max(0.0, until - began),
                )
                until = began + self.lease_seconds
                pause = self.lease_seconds / 3
            except (*passing, asyncio.TimeoutError) as error:
                log.warning("The lease of %s could not be renewed: %s", self.packet["id"], error or "it is over")
                pause = self.lease_seconds / 6
                if now() >= until:
                    self.lost.set()
            except Exception as error:
                log.warning("The lease of %s is lost: %s", self.packet["id"], error)
                self.lost.set()

    async def patch(self, body: Mapping[str, Any]) -> types.Packet:
        """Changes the packet as the holder of its lease; tries again while the service is unavailable."""
        attempt = 0
        while True:
            try:
                return await self.client.patch_packet(
                    self.packet["id"],
                    body=body,  # type: ignore[arg-type]
                    agent_id=self.agent_id,
                    lease_token=self.token,
                )
            except passing as error:
                if attempt >= 8 or self.lost.is_set():
                    raise
                log.warning("%s could not be changed: %s", self.packet["id"], error)
            attempt += 1
            await asyncio.sleep(min(10.0, 0.25 * 2**attempt))
            with contextlib.suppress(*passing):
                current = await self.client.get_packet(self.packet["id"])
                # The change may have been made although its answer did not arrive.
                if current["status"] == body.get("status") and current["revision"] > self.packet["revision"]:
                    return current

    async def ask(
        self, question: str, *, key: str | None, timeout: float | None, **options: Unpack[AskOptions]
    ) -> types.QuestionView:
        """The question with its answer; asks a person unless the question with this key was asked before."""
        unknown = options.keys() - AskOptions.__annotations__.keys()
        if unknown:
            raise TypeError(f"ask has no option {', '.join(sorted(unknown))}.")
        fields = {name: value for name, value in options.items() if value is not None}
        if key is None:
            self._asked += 1
            key = f"ask-{self._asked}"
        body: dict[str, Any] = {"reason": "The agent may not decide this", **fields, "question": question, "key": key}
        if timeout is not None:
            body["timeout_seconds"] = max(1, round(timeout))
        # A packet has one open question, so those that are asked at once wait their turn.
        async with self._asking:
            asked = await self._question(body)
            until = None if timeout is None else time.monotonic() + timeout
            while asked["answer"] is None:
                is_open = asked["state"] == "open"
                is_late = until is not None and time.monotonic() >= until
                # A packet that keeps a question beyond its time can't be ended either.
                if (not is_open or is_late) and (await self._withdraw(asked) or not is_open):
                    raise NoAnswer(f"Nobody answered: {question}")
                await self._wait_for_change(60 if until is None else until - time.monotonic())
                asked = await self._follow(asked)
            return asked

    async def _question(self, body: Mapping[str, Any]) -> types.QuestionView:
        """Asks the question, which its key makes the same one; tries again while the service is unavailable."""
        attempt = 0
        while True:
            try:
                self.packet = await self.client.ask_question(
                    self.packet["id"],
                    body=body,  # type: ignore[arg-type]
                    agent_id=self.agent_id,
                    lease_token=self.token,
                )
                found = await self.client.list_questions(self.packet["id"], key=body["key"], limit=200)
                return found["questions"][-1]
            except passing as error:
                if attempt >= 8 or self.lost.is_set():
                    raise
                log.warning("%s could not be asked about: %s", self.packet["id"], error)
            attempt += 1
            await asyncio.sleep(min(10.0, 0.25 * 2**attempt))

    async def _follow(self, asked: types.QuestionView) -> types.QuestionView:
        """What became of the question; one that this agent has changed is followed."""
        try:
            now = await self.client.get_question(self.packet["id"], asked["question_id"])
            while (successor := now["replaced_by"]) is not None:
                after = await self.client.get_question(self.packet["id"], successor)
                if after["asked_by"]["agent_id"] != now["asked_by"]["agent_id"]:
                    break
                now = after
            return now
        except passing as error:
            log.warning("Waiting for an answer: %s", error)
            await asyncio.sleep(1)
            return asked

    async def _withdraw(self, asked: types.QuestionView) -> bool:
        """Takes a question back, so that the handler can end the packet; False if it is over, or changes each time."""
        for _ in range(8):
            packet = await self.client.get_packet(self.packet["id"])
            hitl = packet["hitl"]
            if packet["status"] != "awaiting_human" or hitl is None or hitl["question_id"] != asked["question_id"]:
                return False
            with contextlib.suppress(PreconditionFailedError):
                self.packet = await self.client.withdraw_question(
                    packet["id"], agent_id=self.agent_id, if_match=packet["revision"]
                )
                return True
        return False

    async def _wait_for_change(self, seconds: float) -> None:
        try:
            self.packet = await self.client.get_packet(
                self.packet["id"],
                wait_seconds=max(1, min(60, round(seconds))),
                until_revision=self.packet["revision"] + 1,
            )
        except passing as error:
            log.warning("Waiting for an answer: %s", error)
            await asyncio.sleep(1)


current_task: ContextVar[Task | None] = ContextVar("baton_task", default=None)
"""What the handler works on that runs here."""


class AsyncContext:
    """What an async handler works on."""

    def __init__(self, task: Task) -> None:
        self._task = task

    @property
    def packet(self) -> types.Packet:
        """The packet, as the worker last saw it."""
        return self._task.packet

    @property
    def lost(self) -> asyncio.Event:
        """Set when another agent may have the packet: stop working on it."""
        return self._task.lost

    async def ask(
        self,
        question: str,
        *,
        key: str | None = None,
        timeout: float | None = None,
        **options: Unpack[AskOptions],
    ) -> types.Answer:
        """Asks a person, and waits for the answer without losing the lease.

        The answer is in `response`, that of a form in `data`. The `key` names the question: asked again with it and the
        same fields, also by another worker that starts over, it is the same question with the same answer. Without
        one, questions are numbered within a run of the handler (`ask-1`, ...). Questions asked at once wait their turn.

        Raises:
            NoAnswer: if nobody answers within `timeout` seconds; the question is then withdrawn.
            QuestionChanged: if the key belongs to a question with other fields.
        """
        asked = await self._task.ask(question, key=key, timeout=timeout, **options)
        assert asked["answer"] is not None
        return asked["answer"]


class Context:
    """What a handler works on, in a thread of its own."""

    def __init__(self, task: Task, loop: asyncio.AbstractEventLoop, lost: threading.Event) -> None:
        self._task = task
        self._loop = loop
        self.lost = lost
        """Set when another agent may have the packet: stop working on it."""

    @property
    def packet(self) -> types.Packet:
        """The packet, as the worker last saw it."""
        return self._task.packet

    def ask(
        self,
        question: str,
        *,
        key: str | None = None,
        timeout: float | None = None,
        **options: Unpack[AskOptions],
    ) -> types.Answer:
        """As `AsyncContext.ask`."""
        asking = AsyncContext(self._task).ask(question, key=key, timeout=timeout, **options)
        return asyncio.run_coroutine_threadsafe(asking, self._loop).result()


AsyncHandler = Callable[[AsyncContext], Awaitable[Result]]
Handler = Callable[[Context], Result]


async def in_coroutine(handler: AsyncHandler, task: Task) -> Outcome:
    """The outcome of an async handler. The loop would end the process for some of what a handler may raise."""
    current_task.set(task)
    try:
        with _span(task):
            return Outcome(await handler(AsyncContext(task)))
    except BaseException as error:
        return Outcome(error=error)


async def in_thread(handler: Handler, task: Task) -> Outcome:
    """The outcome of a handler that runs in a daemon thread, so that the process can end without it."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Outcome] = loop.create_future()
    lost = threading.Event()

    def settle(outcome: Outcome) -> None:
        if not done.done():
            done.set_result(outcome)

    def run() -> None:
        current_task.set(task)
        try:
            with _span(task):
                outcome = Outcome(handler(Context(task, loop, lost)))
        except BaseException as error:
            outcome = Outcome(error=error)
        # The loop is closed if the worker did not wait for this handler.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, outcome)

    async def watch() -> None:
        await task.lost.wait()
        lost.set()

    watching = asyncio.create_task(watch())
    try:
        threading.Thread(target=run, daemon=True, name=f"baton-{task.packet['id']}").start()
        return await done
    finally:
        watching.cancel()
        lost.set()


@contextlib.contextmanager
def _span(task: Task) -> Iterator[None]:
    """A span for the work on a packet, below the request that created it; nothing without OpenTelemetry."""
    try:
        trace = importlib.import_module("opentelemetry.trace")
        propagate = importlib.import_module("opentelemetry.propagate")
    except ImportError:
        yield
        return
    parent = propagate.extract(task.packet["metadata"].get("trace") or {})
    attributes = {"baton.packet.id": task.packet["id"], "baton.agent.id": task.agent_id}
    tracer = trace.get_tracer("baton-client")
    with tracer.start_as_current_span(
        f"work {task.agent_id}", context=parent, kind=trace.SpanKind.CONSUMER, attributes=attributes
    ):
        yield


Handle = Callable[[Task], Awaitable[Outcome]]


async def run_worker(
    client: AsyncHandoff,
    agent_id: str,
    handle: Handle,
    *,
    lease_seconds: int,
    concurrency: int,
    stop: asyncio.Event,
    grace_seconds: float,
) -> None:
    """Claims and handles packets until `stop` is set, or the service refuses to give any."""
    ending = asyncio.Event()

    async def watch() -> None:
        await stop.wait()
        ending.set()

    with _signals(ending):
        watching = asyncio.create_task(watch())
        loops = [
            asyncio.create_task(_loop(client, agent_id, handle, lease_seconds, ending, grace_seconds))
            for _ in range(concurrency)
        ]
        try:
            await asyncio.wait(loops, return_when=asyncio.FIRST_EXCEPTION)
            # If the service refused one of them, the others end their packets.
            ending.set()
            await asyncio.wait(loops)
            for one in loops:
                one.result()
        finally:
            for one in (watching, *loops):
                one.cancel()
            await asyncio.gather(*loops, return_exceptions=True)


async def _loop(
    client: AsyncHandoff,
    agent_id: str,
    handle: Handle,
    lease_seconds: int,
    stop: asyncio.Event,
    grace_seconds: float,
) -> None:
    failures = 0
    while not stop.is_set():
        body: types.ClaimNextRequest = {"agent_id": agent_id, "lease_seconds": lease_seconds, "wait_seconds": 60}
        # A cancelled request closes its connection, and the service gives it no packet.
        claiming = asyncio.create_task(client.claim_next(body=body))
        try:
            packet = await _unless(stop, claiming)
            failures = 0
        except passing as error:
            failures += 1
            log.warning("No packet could be claimed: %s", error)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(stop.wait(), min(30.0, 0.25 * 2 ** min(failures, 7)))
            continue
        if packet is not None:
            await _handle(Task(client, agent_id, packet, lease_seconds), handle, stop, grace_seconds)


async def _unless(stop: asyncio.Event, claiming: asyncio.Task[types.Packet | None]) -> types.Packet | None:
    """What is claimed; None if the worker stops before."""
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({stopping, claiming}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        if not claiming.done():
            claiming.cancel()
    try:
        return await claiming
    except asyncio.CancelledError:
        return None


async def _handle(task: Task, handle: Handle, stop: asyncio.Event, grace_seconds: float) -> None:
    """Ends the packet with the outcome of the handler, whatever that is. Only the end of the worker is raised."""
    renewing = asyncio.create_task(task.renew())
    working = asyncio.ensure_future(handle(task))
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            await asyncio.wait({working}, timeout=grace_seconds)
        if not working.done():
            working.cancel()
            await asyncio.wait({working}, timeout=1)
            await _release(task)
        elif not task.lost.is_set():
            await _end(task, working.result())
    except asyncio.CancelledError:
        if not working.done():
            working.cancel()
            await _release(task)
        raise
    except LeaseLost as error:
        log.warning("%s was lost: %s", task.packet["id"], error)
    except Exception as error:
        log.error("%s could not be ended: %s", task.packet["id"], words_of(error))
    finally:
        for one in (renewing, stopping, working):
            one.cancel()


async def _end(task: Task, outcome: Outcome) -> None:
    """Completes the packet, or fails it with what the handler raised, or with why its result was refused."""
    error = outcome.error
    if error is None:
        try:
            await task.patch(_ending(outcome.result))
            return
        except (LeaseLost, NotFoundError):
            raise
        except Exception as refused:
            error = refused
    log.error("The handler of %s failed", task.packet["id"], exc_info=error)
    await _fail(task, words_of(error))


async def _fail(task: Task, words: str) -> None:
    current = await task.client.get_packet(task.packet["id"])
    # The handler may have ended the packet itself.
    if current["status"] not in ("claimed", "in_progress", "awaiting_human"):
        return
    failed = {"id": "failure", "description": "The work on this packet", "error": words}
    try:
        await task.patch({"status": "failed", "actions": {"failed": [failed]}})
    except (ValidationError, PayloadTooLargeError):
        # The packet has no room for the sentence, or a contract none for the action.
        await task.patch({"status": "failed"})


def _ending(result: object) -> dict[str, Any]:
    """The PATCH that ends the packet with what the handler returned."""
    if result is None:
        return {"status": "completed"}
    if not isinstance(result, Mapping):
        raise TypeError(
            f"The handler returned {type(result).__name__}, not None or a mapping of the fields of a PATCH."
        )
    body = {"status": "completed", **result}
    if body["status"] == "in_progress":
        raise ValueError("The handler returned the status in_progress, which ends nothing.")
    try:
        json_of(body)
    except Exception as error:
        raise ValueError(f"The handler returned what is no JSON: {_text_of(error)}") from error
    return body


def words_of(error: BaseException) -> str:
    """The name and the text of an error, which a packet can hold."""
    text = _text_of(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _text_of(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException:
        return ""
    return text.encode(errors="replace").decode().replace("\0", " ")[:_longest_error]


async def _release(task: Task) -> None:
    """Gives the packet back. One that awaits a person keeps its question, and its lease begins after the answer."""
    try:
        await task.client.release_packet(task.packet["id"], agent_id=task.agent_id, lease_token=task.token)
        log.info("%s was released", task.packet["id"])
    except BatonError as error:
        log.warning("%s could not be released: %s", task.packet["id"], error)


@contextlib.contextmanager
def _signals(stop: asyncio.Event) -> Iterator[None]:
    """Lets SIGTERM and SIGINT stop the worker, where the main thread runs it."""
    loop = asyncio.get_running_loop()
    taken: list[tuple[signal.Signals, Any]] = []
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            before = signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop.set))
            taken.append((number, before))
    try:
        yield
    finally:
        for number, before in taken:
            signal.signal(number, before)
