"""The clients against the real services."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import itertools
import json
import os
import signal
import socket
import socketserver
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import baton_client
from baton_client import AsyncHandoff, Fallback, Handoff, ServerSentEvent, WebhookError, verify_webhook
from baton_client._sse import Parser
from baton_client.handoff.types import CreateRequest, Packet
from conftest import KEY, ROOT, Service


def request_for(agent: str, summary: str = "Refund order 4711") -> CreateRequest:
    return {
        "metadata": {
            "source_agent": {"id": "frontline", "name": "Frontline", "framework": "python"},
            "target_agent": {"id": agent, "name": agent},
        },
        "context": {"summary": summary},
    }


def test_there_is_a_method_for_every_operation_but_the_websocket() -> None:
    for service, client in (("handoff", Handoff), ("fallback", Fallback)):
        paths = json.loads((ROOT / f"openapi/{service}.json").read_text())["paths"]
        ids = {operation["operationId"] for verbs in paths.values() for operation in verbs.values()}
        for name in ids - {"socket"}:
            words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
            assert hasattr(client, words.replace("a2_a", "a2a")), name


def test_a_packet_is_created_claimed_and_completed(handoff_service: Service) -> None:
    with Handoff(handoff_service.url, KEY) as client:
        packet = client.create_packet(body=request_for("resolver"))
        claimed = client.claim_packet(packet["id"], body={"agent_id": "resolver"}, if_match=packet["revision"])
        assert claimed["status"] == "claimed"
        with pytest.raises(baton_client.ConflictError) as refused:
            client.claim_packet(packet["id"], body={"agent_id": "other"})
        assert refused.value.claimed_by is not None
        assert refused.value.claimed_by["agent_id"] == "resolver"
        done = client.patch_packet(packet["id"], body={"status": "completed"}, agent_id="resolver")
        assert done["status"] == "completed"
        assert [event["event_type"] for event in client.packet_history(packet["id"])["events"]][-1] == "completed"
        brief = client.packet_brief(packet["id"], format="markdown")
        assert "Refund order 4711" in brief
        with pytest.raises(baton_client.NotModified):
            client.get_packet(packet["id"], if_none_match=done["revision"])
        with pytest.raises(baton_client.NotFoundError):
            client.get_packet("unknown")
        with pytest.raises(baton_client.ValidationError) as faults:
            client.create_packet(body={"metadata": {}, "context": {}})  # type: ignore[call-overload]
        assert len(faults.value.errors) > 1
        assert client.health()


def test_a_contract_says_what_a_packet_lacks(handoff_service: Service) -> None:
    schema = {"properties": {"context": {"required": ["custom"]}}}
    with Handoff(handoff_service.url, KEY) as client:
        contract = client.publish_contract("strict", body={"schema": schema, "description": "Custom fields."})
        assert contract["version"] == 1
        request: CreateRequest = {
            "metadata": {
                "source_agent": {"id": "frontline", "name": "Frontline", "framework": "pytest"},
                "target_agent": {"id": "strict", "name": "Strict"},
            },
            "context": {"summary": "Refund order 4711"},
        }
        with pytest.raises(baton_client.ContractViolation) as refused:
            client.create_packet(body=request)
        assert [error["field"] for error in refused.value.errors] == ["context.custom"]
        assert refused.value.contract == {"agent_id": "strict", "version": 1, "description": "Custom fields."}
        tried = client.create_packet(body=request, dry_run=True)
        assert [error["code"] for error in tried["errors"]] == ["CONTRACT_VIOLATION"]
        request["context"]["custom"] = {}
        assert client.create_packet(body=request, dry_run=True) == {"ok": True, "errors": []}
        client.publish_contract("another", body={"schema": {}})
        assert [found["agent_id"] for found in client.iter_list_contracts(limit=1)] == ["another", "strict"]
        client.delete_contract("strict")
        with pytest.raises(baton_client.NotFoundError):
            client.get_contract("strict")


def test_iterators_read_all_pages(handoff_service: Service) -> None:
    with Handoff(handoff_service.url, KEY) as client:
        made = [client.create_packet(body=request_for("pages"))["id"] for _ in range(5)]
        found = [packet["id"] for packet in client.iter_list_packets(target_agent="pages", status=["created"], limit=2)]
        assert found == made[::-1]
        tagged = request_for("tagged")
        tagged["metadata"]["tags"] = ["a, b", 'say "hi"']
        one = client.create_packet(body=tagged)["id"]
        assert [packet["id"] for packet in client.iter_list_packets(tags=["a, b", 'say "hi"'])] == [one]

    async def read() -> list[str]:
        async with AsyncHandoff(handoff_service.url, KEY) as client:
            return [packet["id"] async for packet in client.iter_list_packets(target_agent="pages", limit=2)]

    assert asyncio.run(read()) == made[::-1]


def test_the_fallback_client_makes_and_exports_a_chain(fallback_service: Service) -> None:
    with Fallback(fallback_service.url) as client:
        chain = client.create_chain(
            body={
                "name": "c",
                "providers": [{"name": "p", "model_id": "openai/gpt-4o", "api_key_env": "OPENAI_API_KEY"}],
            }
        )
        assert [one["id"] for one in client.list_chains()] == [chain["id"]]
        assert client.export_chain(chain["id"], format="litellm")["format"] == "litellm"
        assert "gpt-4o" in client.export_chain(chain["id"], format="litellm", raw=True)
        client.delete_chain(chain["id"])


def test_an_event_may_arrive_in_pieces_and_contain_what_python_takes_for_the_end_of_a_line() -> None:
    parser = Parser()
    text = "id: 7\r\nevent: packet.created\r\ndata: a\u2028b\x85c\r\ndata: d\r\n\r\n"
    found = [event for character in text for event in parser.feed(character)]
    assert found == [ServerSentEvent("packet.created", "a\u2028b\x85c\nd", "7")]
    assert parser.last_id == "7"


def test_a_long_line_is_read_in_time_that_grows_with_its_length_and_is_bounded() -> None:
    def seconds(parts: int) -> float:
        parser = Parser()
        part = "x" * 16
        began = time.process_time()
        found = [event for text in ["data: ", *([part] * parts), "\n\n"] for event in parser.feed(text)]
        assert [len(event.data) for event in found] == [16 * parts]
        return time.process_time() - began

    # Quadratic reading takes 256 times as long for 16 times as much.
    assert min(seconds(320_000) for _ in range(3)) < 64 * min(seconds(20_000) for _ in range(3))
    parser = Parser()
    with pytest.raises(baton_client.UnreadableAnswer, match="longer than"):
        for _ in range(20):
            list(parser.feed("data: " + "x" * 1024 * 1024 + "\n"))


@pytest.mark.parametrize(("retry", "seconds"), [("²", 3.0), ("-1", 3.0), ("1500", 1.5), ("9" * 5000, 60.0)])
def test_a_pause_that_is_no_number_is_ignored_and_a_long_one_cut(retry: str, seconds: float) -> None:
    parser = Parser()
    assert list(parser.feed(f"retry: {retry}\n\n")) == []
    assert parser.retry == seconds


def test_an_async_client_works_in_a_second_loop_and_in_loops_of_several_threads(handoff_service: Service) -> None:
    client = AsyncHandoff(handoff_service.url, KEY)
    packet = Handoff(handoff_service.url, KEY).create_packet(body=request_for("loops"))

    async def read() -> str:
        return (await client.get_packet(packet["id"]))["id"]

    async def close() -> None:
        assert await read() == packet["id"]
        await client.close()
        assert await read() == packet["id"]
        await client.close()

    assert [asyncio.run(read()) for _ in range(3)] == [packet["id"]] * 3
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda _: asyncio.run(read()), range(8))) == [packet["id"]] * 8
    asyncio.run(close())


def test_a_worker_in_a_running_loop_says_what_to_do_instead() -> None:
    async def notebook() -> None:
        Handoff("http://127.0.0.1:9").work("x", lambda _: None)

    with pytest.raises(RuntimeError, match="as in a notebook: use `await AsyncHandoff"):
        asyncio.run(notebook())


class Stream(socketserver.StreamRequestHandler):
    """Resets and refuses the first six connections, cuts the seventh after `connected`, later ones after an event."""

    last_ids: list[str | None]

    def handle(self) -> None:
        last_id = None
        while line := self.rfile.readline().strip():
            name, _, value = line.partition(b": ")
            if name.lower() == b"last-event-id":
                last_id = value.decode()
        self.last_ids.append(last_id)
        turn = len(self.last_ids)
        if turn in (1, 3, 5):
            self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
        if turn in (2, 4, 6):
            self.wfile.write(
                b"HTTP/1.1 503 No\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\nretry-after: 0\r\n\r\nno!"
            )
            return
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        texts = ["id: 7\nevent: connected\nretry: 1\ndata: {}\n\n"]
        if turn > 7:
            texts.append(f'id: {turn}\nevent: packet.created\ndata: {{"packet_id": "p{turn}"}}\n\nid: 99\nevent: pack')
        self.wfile.write(head + b"".join(b"%x\r\n%s\r\n" % (len(text), text.encode()) for text in texts))


def test_a_stream_whose_first_connections_fail_gets_all_that_came_since_it_was_connected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pause = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda _: pause(0))
    monkeypatch.setattr(time, "sleep", lambda _: None)

    def served(read: Callable[[str], list[str | None]]) -> tuple[list[str | None], list[str | None]]:
        handler = type("Own", (Stream,), {"last_ids": []})
        with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            found = read(f"http://127.0.0.1:{server.server_address[1]}")
            server.shutdown()
            return found, handler.last_ids  # type: ignore[attr-defined]

    def sync(url: str) -> list[str | None]:
        with Handoff(url, KEY) as client:
            return [event.packet_id for event in itertools.islice(client.events(), 2)]

    def aio(url: str) -> list[str | None]:
        async def read() -> list[str | None]:
            found: list[str | None] = []
            async with AsyncHandoff(url, KEY) as client:
                async for event in client.events():
                    found.append(event.packet_id)
                    if len(found) == 2:
                        break
            return found

        return asyncio.run(read())

    for read in (sync, aio):
        assert served(read) == (["p8", "p9"], [*[None] * 7, "7", "8"])


def test_a_stream_that_is_refused_for_long_waits_as_long_as_it_is_asked_to() -> None:
    with Handoff("http://127.0.0.1:1", KEY) as client:
        for asked, least in ((7, 7), (61, 61), (3600, 600)):
            refused = baton_client.RateLimitedError(429, {"retry-after": str(asked)}, "")
            for failures in (1, 2):
                assert least <= client._stream_pause(Parser(), refused, failures) <= least * 1.25


class Answering(BaseHTTPRequestHandler):
    """Answers with what the class says."""

    answer: tuple[int, dict[str, str], bytes] = (200, {}, b"")

    def do_GET(self) -> None:
        status, headers, body = self.answer
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def odd_url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


JSON = {"Content-Type": "application/json"}
STREAM = {"Content-Type": "text/event-stream"}


@pytest.mark.parametrize(
    "answer",
    [
        (200, JSON, b"<html>"),
        (200, JSON, b"[" * 200_000),
        (200, JSON, b"\xff{}"),
        (200, {**JSON, "Content-Encoding": "gzip"}, b"no gzip"),
        (502, JSON, b"[" * 200_000),
        (502, {**JSON, "Content-Encoding": "gzip"}, b"no gzip"),
        (400, JSON, b'{"detail": 1, "errors": 2, "code": []}'),
    ],
)
def test_whatever_answers_the_client_raises_its_own_errors(
    odd_url: str, answer: tuple[int, dict[str, str], bytes]
) -> None:
    Answering.answer = answer
    with Handoff(odd_url, KEY, retries=0) as client, pytest.raises(baton_client.BatonError):
        client.get_packet("x")

    async def ask() -> None:
        async with AsyncHandoff(odd_url, KEY, retries=0) as client:
            await client.get_packet("x")

    with pytest.raises(baton_client.BatonError):
        asyncio.run(ask())


@pytest.mark.parametrize("data", ["<html>", "[1]", "[" * 200_000])
def test_an_event_that_is_no_object_is_an_error_of_the_client(odd_url: str, data: str) -> None:
    Answering.answer = (200, STREAM, f"event: packet.created\ndata: {data}\n\n".encode())
    with Handoff(odd_url, KEY) as client, pytest.raises(baton_client.UnreadableAnswer):
        next(client.events())


def test_events_go_on_after_a_restart_of_the_service_without_a_gap(own_service: Service) -> None:
    with Handoff(own_service.url, KEY, retries=20) as client:
        # Characters that end a line for `str.splitlines`, but not in a stream of events.
        request = request_for("listener", "Refund\u2028order\x854711")
        first = client.create_packet(body=request)["id"]
        stream = client.events(subscribe="agent:listener")
        found: list[str | None] = []
        summaries: set[str] = set()
        opened = threading.Event()

        def listen() -> None:
            for event in stream:
                found.append(event.packet_id)
                if event.data is not None:
                    summaries.add(event.data["context"]["summary"])
                opened.set()
                if len(found) == 3:
                    return

        listening = threading.Thread(target=listen, daemon=True)
        listening.start()
        ids = [first]
        until = time.monotonic() + 30
        while not opened.wait(0.2):
            assert time.monotonic() < until
            ids.append(client.create_packet(body=request)["id"])
        seen = found[0]
        own_service.kill()
        own_service.start()
        later = [client.create_packet(body=request)["id"] for _ in range(3)]
        listening.join(20)
        assert not listening.is_alive()
        expected = [*ids, *later]
        start = expected.index(str(seen))
        assert found == expected[start : start + 3]
        assert summaries == {request["context"]["summary"]}


def test_agents_and_idempotency_keys_travel_as_utf_8(handoff_service: Service) -> None:
    agent = "Zoë 🦊 " + "é" * 240
    with Handoff(handoff_service.url, KEY + "\n", agent_id=agent) as client:
        body = request_for(agent)
        made = client.create_packet(body=body, idempotency_key="schlüssel-🔑")
        assert client.create_packet(body=body, idempotency_key="schlüssel-🔑") == made
        claimed = client.claim_packet(made["id"], body={"agent_id": agent})
        done = client.patch_packet(claimed["id"], body={"status": "completed"})
        assert client.packet_history(done["id"])["events"][-1]["actor"] == f"agent:{agent}"


@pytest.mark.parametrize("secret", ["secret\nkey", "secret\r\nX-Other: 1", "secret key", "schlüssel", " \n"])
def test_a_key_that_no_header_can_hold_is_refused_without_being_shown(secret: str) -> None:
    for client in (Handoff, AsyncHandoff, baton_client.Fallback, baton_client.AsyncFallback):
        with pytest.raises(ValueError, match="The API key must be visible ASCII") as refused:
            client("http://127.0.0.1:9", secret)
        assert "secret" not in repr(refused.value)


def test_a_header_with_a_line_break_is_refused_without_being_shown(handoff_service: Service) -> None:
    with Handoff(handoff_service.url, KEY) as client:
        for named in ({"lease_token": "secret\n"}, {"agent_id": "secret\0"}):
            with pytest.raises(ValueError, match="can't have line breaks") as refused:
                client.patch_packet("x", body={}, **named)  # type: ignore[arg-type]
            assert "secret" not in str(refused.value)


def wait_for(client: Handoff, packet: Packet, status: str) -> Packet:
    until = time.monotonic() + 30
    current = packet
    while current["status"] != status:
        assert time.monotonic() < until, current["status"]
        current = client.get_packet(packet["id"], wait_seconds=1, until=status)
    return current


def test_a_worker_completes_asks_and_fails(handoff_service: Service) -> None:
    stop = threading.Event()

    def handler(ctx: baton_client.Context) -> dict[str, object] | None:
        summary = ctx.packet["context"]["summary"]
        if summary == "fail":
            raise RuntimeError("No such order")
        if summary == "late":
            ctx.ask("Nobody?", timeout=1)
        if summary == "ask":
            answer = ctx.ask("Refund?", options=["Yes", "No"], timeout=60)
            return {"context": {"custom": {"answer": answer.get("response")}}}
        return None

    with Handoff(handoff_service.url, KEY) as client:
        worker = threading.Thread(target=client.work, args=("w1", handler), kwargs={"stop": stop, "concurrency": 2})
        worker.start()
        texts = ("plain", "ask", "fail", "late")
        plain, asking, failing, late = (client.create_packet(body=request_for("w1", text)) for text in texts)
        wait_for(client, plain, "completed")
        failed = wait_for(client, failing, "failed")
        assert failed["actions"]["failed"][0]["error"] == "RuntimeError: No such order"
        wait_for(client, asking, "awaiting_human")
        client.respond_packet(asking["id"], body={"response": "Yes", "responded_by": "dana"})
        assert wait_for(client, asking, "completed")["context"]["custom"]["answer"] == "Yes"
        failed = wait_for(client, late, "failed")
        assert failed["actions"]["failed"][0]["error"] == "NoAnswer: Nobody answered: Nobody?"
        stop.set()
        worker.join(10)
        assert not worker.is_alive()


WORKER = """
import sys, time
from baton_client import Handoff

def handler(ctx):
    print("took", ctx.packet["id"], flush=True)
    if sys.argv[2] == "slow":
        ctx.lost.wait(600)
    return {"context": {"custom": {"by": sys.argv[2]}}}

Handoff(sys.argv[1], sys.argv[3]).work("w2", handler, lease_seconds=2, grace_seconds=0.2)
"""


def start_worker(service: Service, tmp_path: Path, name: str) -> subprocess.Popen[str]:
    file = tmp_path / "worker.py"
    file.write_text(WORKER)
    env = {**os.environ, "PYTHONPATH": str(ROOT / "packages/python/src")}
    command = [sys.executable, str(file), service.url, name, KEY]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)


def lease_end(client: Handoff, packet: Packet) -> str:
    """When the lease of a claimed packet ends."""
    found = client.get_packet(packet["id"])
    assert (found["status"], found["lease"] is None) == ("claimed", False)
    assert found["lease"] is not None
    assert found["lease"]["expires_at"] is not None
    return found["lease"]["expires_at"]


def test_another_worker_resumes_after_kill_9_and_sigterm_gives_the_packet_back(
    handoff_service: Service, tmp_path: Path
) -> None:
    with Handoff(handoff_service.url, KEY) as client:
        packet = client.create_packet(body=request_for("w2"))
        for number in (signal.SIGKILL, signal.SIGTERM):
            slow = start_worker(handoff_service, tmp_path, "slow")
            assert slow.stdout is not None
            assert slow.stdout.readline() == f"took {packet['id']}\n"
            first = lease_end(client, packet)
            until = time.monotonic() + 30
            while lease_end(client, packet) == first:
                assert time.monotonic() < until, "The lease was not renewed."
                time.sleep(0.05)
            os.kill(slow.pid, number)
            assert slow.wait(10) == (-9 if number == signal.SIGKILL else 0)
            if number == signal.SIGTERM:
                assert client.get_packet(packet["id"])["status"] == "created"
        quick = start_worker(handoff_service, tmp_path, "quick")
        assert wait_for(client, packet, "completed")["context"]["custom"]["by"] == "quick"
        quick.terminate()
        assert quick.wait(10) == 0


def headers_for(body: bytes, *secrets: str, stamp: int = 1000) -> dict[str, str]:
    def standard(secret: str) -> str:
        key = base64.b64decode(secret[6:] + "==") if secret.startswith("whsec_") else secret.encode()
        digest = hmac.new(key, f"msg.{stamp}.".encode() + body, hashlib.sha256).digest()
        return "v1," + base64.b64encode(digest).decode()

    return {
        "X-SERVICE-Signature": "sha256=" + hmac.new(secrets[0].encode(), body, hashlib.sha256).hexdigest(),
        "webhook-id": "msg",
        "Webhook-Timestamp": str(stamp),
        "webhook-signature": " ".join(map(standard, secrets)),
    }


def test_a_webhook_needs_both_signatures_and_a_recent_time() -> None:
    body = b'{"type":"packet.created"}'
    headers = headers_for(body, "secret")
    assert verify_webhook("secret", headers, body, now=1100)["type"] == "packet.created"
    # While secrets overlap the older one verifies too.
    assert verify_webhook("older", headers_for(body, "secret", "older"), body, now=1100)
    for encoded in ("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODk=", "whsec_QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo"):
        assert verify_webhook(encoded, headers_for(body, encoded), body, now=1100)
        with pytest.raises(WebhookError):
            verify_webhook(encoded.removesuffix("=") + "A", headers_for(body, encoded), body, now=1100)
    with pytest.raises(WebhookError, match="no JSON"):
        verify_webhook("secret", headers_for(b"{", "secret"), b"{", now=1100)
    for changed in (
        {**headers, "X-SERVICE-Signature": "sha256=00"},
        {**headers, "webhook-signature": "v1,AAAA"},
        {**headers, "Webhook-Timestamp": "1001"},
        {**headers, "Webhook-Timestamp": ""},
        {**headers, "Webhook-Timestamp": "1" * 5000},
        {**headers, "webhook-id": "\udcff"},
        {**headers, "webhook-signature": "v1,\udcff"},
    ):
        with pytest.raises(WebhookError):
            verify_webhook("secret", changed, body, now=1100)
    for now in (600.0, 1400.0):
        with pytest.raises(WebhookError):
            verify_webhook("secret", headers, body, now=now)
    with pytest.raises(WebhookError):
        verify_webhook("secret", headers, body + b" ", now=1100)
