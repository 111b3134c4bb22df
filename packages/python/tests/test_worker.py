"""Workers whose handlers raise or return what they should not."""

from __future__ import annotations

import asyncio
import datetime
import decimal
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from baton_client import AsyncContext, AsyncHandoff, Context, Handoff
from baton_client.handoff.types import Packet
from baton_client.worker import Task
from conftest import KEY, Service
from test_client import request_for, wait_for


class Strange(BaseException):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def asking(ctx: Any) -> Any:
    with Handoff(ctx.url, KEY) as client:
        hitl = {"required": True, "reason": "r", "question": "Refund?"}
        lease = ctx.packet["lease"]
        body: Any = {"status": "awaiting_human", "hitl": hitl}
        client.patch_packet(ctx.packet["id"], body=body, lease_token=lease["token"])


def deep() -> Any:
    found: Any = []
    for _ in range(100_000):
        found = [found]
    return {"context": {"custom": {"deep": found}}}


def raising(error: BaseException) -> Callable[[Any], Any]:
    def handler(_: Any) -> Any:
        raise error

    return handler


def returning(result: Any) -> Callable[[Any], Any]:
    return lambda _: result


def custom(value: Any) -> Callable[[Any], Any]:
    return returning({"context": {"custom": {"value": value}}})


CASES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "exit": (lambda _: sys.exit(3), "SystemExit: 3"),
    "interrupt": (raising(KeyboardInterrupt()), "KeyboardInterrupt"),
    "cancelled": (raising(asyncio.CancelledError()), "CancelledError"),
    "generator": (raising(GeneratorExit("left")), "GeneratorExit: left"),
    "strange": (raising(Strange()), "Strange"),
    "letters": (raising(RuntimeError("a\0b\ud83d")), "RuntimeError: a b?"),
    "date": (
        custom(datetime.date(2026, 1, 1)),
        "ValueError: The handler returned what is no JSON: Object of type date",
    ),
    "decimal": (
        custom(decimal.Decimal("1.5")),
        "ValueError: The handler returned what is no JSON: Object of type Decimal",
    ),
    "nan": (custom(float("nan")), "ValueError: The handler returned what is no JSON: Out of range float values"),
    "emoji": (custom("\ud83d"), "ValueError: The handler returned what is no JSON: 'utf-8' codec can't encode"),
    "deep": (lambda _: deep(), "ValueError: The handler returned what is no JSON: maximum recursion depth exceeded"),
    "text": (returning("done"), "TypeError: The handler returned str, not None or a mapping"),
    "list": (returning([{"status": "completed"}]), "TypeError: The handler returned list, not None or a mapping"),
    "false": (returning(False), "TypeError: The handler returned bool, not None or a mapping"),
    "going": (returning({"status": "in_progress"}), "ValueError: The handler returned the status in_progress"),
    "field": (returning({"contxt": {}}), "ValidationError: "),
    "large": (custom("x" * 12_000_000), "PayloadTooLargeError: "),
    "unanswered": (asking, "ValidationError: "),
}


def check(client: Handoff, packets: dict[str, Packet], seen: list[str]) -> None:
    for name, packet in packets.items():
        failed = wait_for(client, packet, "failed")["actions"]["failed"]
        assert [one["error"].startswith(CASES[name][1]) for one in failed] == [True], (name, failed)
    assert sorted(seen) == sorted([*packets, "plain"])


def test_a_packet_fails_once_with_whatever_its_handler_raised_or_returned(handoff_service: Service) -> None:
    stop = threading.Event()
    seen: list[str] = []
    stopping = {**CASES, "stop": (raising(StopIteration("end")), "StopIteration: end")}

    def handler(ctx: Context) -> Any:
        name = ctx.packet["context"]["summary"]
        seen.append(name)
        ctx.url = handoff_service.url  # type: ignore[attr-defined]
        return None if name == "plain" else stopping[name][0](ctx)

    with Handoff(handoff_service.url, KEY) as client:
        packets = {name: client.create_packet(body=request_for("odd", name)) for name in stopping}
        plain = client.create_packet(body=request_for("odd", "plain"))
        options = {"stop": stop, "concurrency": 2, "lease_seconds": 5}
        worker = threading.Thread(target=client.work, args=("odd", handler), kwargs=options)
        worker.start()
        try:
            wait_for(client, plain, "completed")
            failed = wait_for(client, packets.pop("stop"), "failed")
            assert failed["actions"]["failed"][0]["error"] == "StopIteration: end"
            seen.remove("stop")
            check(client, packets, seen)
        finally:
            stop.set()
            worker.join(20)
        assert not worker.is_alive()


def test_a_coroutine_may_do_the_same(handoff_service: Service) -> None:
    seen: list[str] = []

    async def handler(ctx: AsyncContext) -> Any:
        name = ctx.packet["context"]["summary"]
        seen.append(name)
        ctx.url = handoff_service.url  # type: ignore[attr-defined]
        return None if name == "plain" else CASES[name][0](ctx)

    async def run(check_all: Callable[[], Awaitable[None]]) -> None:
        async with AsyncHandoff(handoff_service.url, KEY) as client:
            stop = asyncio.Event()
            working = asyncio.create_task(client.work("odd-async", handler, stop=stop, concurrency=2, lease_seconds=5))
            await check_all()
            assert not working.done()
            stop.set()
            await working

    with Handoff(handoff_service.url, KEY) as client:
        packets = {name: client.create_packet(body=request_for("odd-async", name)) for name in CASES}
        plain = client.create_packet(body=request_for("odd-async", "plain"))

        def check_all() -> None:
            wait_for(client, plain, "completed")
            check(client, packets, seen)

        asyncio.run(run(lambda: asyncio.to_thread(check_all)))


def test_a_handler_that_is_no_coroutine_function_fails_the_packet(handoff_service: Service) -> None:
    async def run(packet: Packet) -> Packet:
        async with AsyncHandoff(handoff_service.url, KEY) as client:
            stop = asyncio.Event()
            handler: Any = lambda _: {"status": "completed"}  # noqa: E731
            working = asyncio.create_task(client.work("plain-function", handler, stop=stop))
            found = await client.get_packet(packet["id"], wait_seconds=30, until="failed,completed")
            stop.set()
            await working
            return found

    with Handoff(handoff_service.url, KEY) as client:
        found = asyncio.run(run(client.create_packet(body=request_for("plain-function"))))
    assert found["actions"]["failed"][0]["error"].startswith("TypeError: ")


class Clock(asyncio.SelectorEventLoop):
    """A loop whose time moves on to the next timer as soon as nothing else is to be done."""

    now = 0.0

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        waiting: Any = self
        if not waiting._ready and waiting._scheduled:
            self.now = max(self.now, waiting._scheduled[0].when())
        super()._run_once()  # type: ignore[misc]


@pytest.mark.parametrize(("renewals", "seconds"), [(0, 60.0), (1, 80.0), (2, 110.0)])
def test_a_lease_that_nobody_renews_is_lost_when_it_is_over(renewals: int, seconds: float) -> None:
    """The first renewals are answered after ten seconds, the others never."""
    renewed: list[str] = []

    class Silent:
        async def renew_lease(self, id: str, **_: Any) -> None:
            renewed.append(id)
            await asyncio.sleep(10 if len(renewed) <= renewals else 1e9)

    packet: Any = {"id": "p1", "lease": {"token": "t"}}
    silent: Any = Silent()
    task = Task(silent, "resolver", packet, 60)
    loop = Clock()
    try:
        loop.run_until_complete(task.renew())
        assert task.lost.is_set()
        assert loop.now == pytest.approx(seconds)
    finally:
        loop.close()


def test_a_worker_that_is_cancelled_gives_its_packet_back(handoff_service: Service) -> None:
    async def run(packet: Packet) -> str:
        started = asyncio.Event()

        async def handler(_: AsyncContext) -> None:
            started.set()
            await asyncio.sleep(600)

        async with AsyncHandoff(handoff_service.url, KEY) as client:
            working = asyncio.create_task(client.work("cancelled", handler))
            await started.wait()
            working.cancel()
            with pytest.raises(asyncio.CancelledError):
                await working
            return (await client.get_packet(packet["id"]))["status"]

    with Handoff(handoff_service.url, KEY) as client:
        assert asyncio.run(run(client.create_packet(body=request_for("cancelled")))) == "created"


def test_when_the_service_refuses_one_claim_the_packet_of_another_ends(handoff_service: Service) -> None:
    """The key of the worker is revoked while a handler works: the handler ends, and then the worker."""
    with Handoff(handoff_service.url, KEY) as admin:
        key = admin.create_key(body={"name": "worker"})
        packet = admin.create_packet(body=request_for("revoked"))
        finish = threading.Event()
        ended: list[str] = []

        def handler(ctx: Context) -> None:
            admin.delete_key(key["id"])
            # The other loop waits for a packet, and is refused now.
            ended.append("lost" if ctx.lost.wait(0.5) else "worked")

        def work() -> None:
            with Handoff(handoff_service.url, key["key"]) as client, pytest.raises(Exception) as refused:
                client.work("revoked", handler, concurrency=2, grace_seconds=5)
            ended.append(type(refused.value).__name__)
            finish.set()

        worker = threading.Thread(target=work, daemon=True)
        worker.start()
        assert finish.wait(30)
        assert ended == ["worked", "UnauthorizedError"]
        assert admin.get_packet(packet["id"])["status"] == "claimed"


def test_the_span_of_the_work_is_below_the_request_that_created_the_packet(handoff_service: Service) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    stop = threading.Event()
    inside: list[int] = []

    def handler(_: Context) -> None:
        inside.append(trace.get_current_span().get_span_context().trace_id)

    async def work(_: AsyncContext) -> None:
        handler(_)  # type: ignore[arg-type]
        raise RuntimeError("No such order")

    async def run() -> None:
        async with AsyncHandoff(handoff_service.url, KEY) as client:
            working = asyncio.create_task(client.work("traced-async", work, stop=(ending := asyncio.Event())))
            await asyncio.to_thread(wait_for, admin, second, "failed")
            ending.set()
            await working

    headers = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01", "X-API-Key": KEY}
    made = [
        httpx.post(f"{handoff_service.url}/api/v1/packets", json=request_for(agent), headers=headers).json()
        for agent in ("traced", "traced-async")
    ]
    first, second = made
    with Handoff(handoff_service.url, KEY) as admin:
        worker = threading.Thread(target=admin.work, args=("traced", handler), kwargs={"stop": stop})
        worker.start()
        try:
            wait_for(admin, first, "completed")
        finally:
            stop.set()
            worker.join(20)
        asyncio.run(run())
    assert inside == [int("a" * 32, 16)] * 2
    found = {span.attributes["baton.packet.id"]: span for span in exporter.get_finished_spans() if span.attributes}
    spans = [found[packet["id"]] for packet in made]
    assert [(span.name, span.kind) for span in spans] == [
        ("work traced", trace.SpanKind.CONSUMER),
        ("work traced-async", trace.SpanKind.CONSUMER),
    ]
    assert [span.parent.span_id for span in spans if span.parent] == [int("b" * 16, 16)] * 2
    assert [span.status.status_code for span in spans] == [trace.StatusCode.UNSET, trace.StatusCode.ERROR]
