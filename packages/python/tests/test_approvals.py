"""What approvals promise: an action waits for its decision, and what was approved happens once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import baton_client
from baton_client import AsyncHandoff, Context, Handoff
from conftest import KEY, Service
from test_client import request_for, wait_for
from test_questions import working

Decide = Callable[..., Any]


_people: dict[str, str] = {}


def dana(service: Service) -> Handoff:
    """The client of a person, whose key the agent has not made."""
    if service.url not in _people:
        with Handoff(service.url, KEY) as admin:
            made = admin.create_key(body={"name": "dana", "scopes": ["read", "respond"], "responder": "dana"})
        _people[service.url] = made["key"]
    return Handoff(service.url, _people[service.url])


@pytest.fixture
def agent(handoff_service: Service) -> Handoff:
    """The client of an agent with a key of its own."""
    with Handoff(handoff_service.url, KEY) as admin:
        made = admin.create_key(body={"name": "agent", "scopes": ["read", "work"]})
    return Handoff(handoff_service.url, made["key"], "refunds")


def asked(admin: Handoff, call_id: str) -> Any:
    """The packet that asks about a call, once it does."""
    while True:
        for packet in admin.iter_list_awaiting(view="full"):
            hitl: Any = packet["hitl"]
            if hitl["action"]["call_id"] == call_id:
                return packet


def deciding(service: Service, call_id: str, **decision: Any) -> Any:
    """Decides about a call as a person; what was asked."""
    with dana(service) as person:
        while True:
            packet = asked(person, call_id)
            body: Any = {"responded_by": "dana", **decision}
            # An overdue question is listed until it is asked anew.
            with contextlib.suppress(baton_client.GoneError):
                person.respond_packet(packet["id"], body=body)
                return packet["hitl"]


def beside(work: Callable[[], Any], decide: Callable[[], Any]) -> Any:
    """What `work` returns while a person decides."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except Exception as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    decide()
    return future.result(30)


def test_an_action_is_approved_edited_rejected_or_answered(handoff_service: Service, agent: Handoff) -> None:
    def ask(call_id: str) -> baton_client.ActionDecision:
        return agent.approve("refund", {"amount": 5}, call_id=call_id, decisions=["approve", "edit", "respond"])

    given: dict[str, dict[str, Any]] = {
        "approve": {},
        "edit": {"arguments": {"amount": 4}},
        "reject": {"message": "No"},
        "respond": {"message": "Ask again in May"},
    }
    for word, more in given.items():
        found = beside(
            partial(ask, f"word {word}"), partial(deciding, handoff_service, f"word {word}", decision=word, **more)
        )
        assert (found.decision, found.message) == (word, more.get("message"))
        assert found.arguments == more.get("arguments", {"amount": 5})
        assert found.approved == (word in ("approve", "edit"))
        assert ask(f"word {word}").packet["id"] == found.packet["id"], "asked again, it is the same decision"
    with pytest.raises(baton_client.CallChanged):
        agent.approve("refund", {"amount": 6}, call_id="word approve")
    edited = agent.approve("refund", {"amount": 4}, call_id="word edit")
    assert edited.decision == "edit", "a framework that carries the edit asks with what was approved"


def test_a_function_runs_once_with_what_was_approved(handoff_service: Service, agent: Handoff) -> None:
    ran: list[Any] = []

    @agent.requires_approval(reason="Over 50", decisions=["approve", "edit", "respond"])
    def refund(context: Any, order: str, /, amount: int, *, note: str = "none") -> dict[str, Any]:
        ran.append((context.name, order, amount, note))
        if amount < 0:
            raise ValueError("Negative")
        return {"refunded": amount}

    def call(call_id: str, amount: int = 500) -> Any:
        return refund(SimpleNamespace(name="ctx", tool_call_id=call_id), "ORD-1", amount)

    arguments = {"order": "ORD-1", "amount": 40, "note": "less"}
    done = beside(lambda: call("once"), lambda: deciding(handoff_service, "once", decision="edit", arguments=arguments))
    assert done == {"refunded": 40}
    assert ran == [("ctx", "ORD-1", 40, "less")]
    assert call("once") == {"refunded": 40}, "the result is that of the first call"

    with pytest.raises(ValueError, match="Negative"):
        beside(lambda: call("fails", -1), lambda: deciding(handoff_service, "fails", decision="approve"))
    with pytest.raises(baton_client.ActionFailed, match="refund failed: ValueError: Negative"):
        call("fails", -1)
    with pytest.raises(baton_client.ActionRejected, match=r"^Too much$"):
        beside(lambda: call("no"), lambda: deciding(handoff_service, "no", decision="reject", message="Too much"))
    assert (
        beside(
            lambda: call("told"), lambda: deciding(handoff_service, "told", decision="respond", message="Paid already")
        )
        == "Paid already"
    )
    with pytest.raises(
        TypeError, match="The approved arguments do not fit refund: missing a required argument: 'amount'"
    ):
        beside(
            lambda: call("typo"),
            lambda: deciding(handoff_service, "typo", decision="edit", arguments={"order": "x", "amont": 1}),
        )
    assert len(ran) == 2
    packet = agent.approve("refund", {"order": "ORD-1", "amount": 500, "note": "none"}, call_id="typo").packet
    with pytest.raises(baton_client.NotFoundError):
        agent.get_execution(packet["id"])
    with pytest.raises(ValueError, match="needs a call_id"):
        refund(SimpleNamespace(name="ctx"), "ORD-1", 1)


def test_functions_that_cannot_be_asked_about_are_refused(handoff_service: Service, agent: Handoff) -> None:
    with pytest.raises(TypeError, match=r"takes \*args"):
        agent.requires_approval()(lambda *args: args)

    async def refund() -> None:
        pass

    with pytest.raises(TypeError, match="use AsyncHandoff"):
        agent.requires_approval()(refund)
    with Handoff(handoff_service.url, KEY) as nameless, pytest.raises(ValueError, match="agent is missing"):
        nameless.approve("refund", {}, call_id="x")


def test_a_question_that_is_over_and_an_approval_that_has_expired_are_asked_anew(
    handoff_service: Service, agent: Handoff
) -> None:
    ask: dict[str, Any] = {"call_id": "late", "valid_seconds": 1}
    with pytest.raises(baton_client.NoAnswer, match="Nobody decided about refund"):
        agent.approve("refund", {}, timeout=1, **ask)
    first = beside(
        lambda: agent.approve("refund", {}, **ask), lambda: deciding(handoff_service, "late", decision="approve")
    )
    assert len(agent.list_questions(first.packet["id"])["questions"]) == 2, "in the same packet"
    wait_for(agent, first.packet, "expired")
    second = beside(
        lambda: agent.approve("refund", {}, **ask), lambda: deciding(handoff_service, "late~2", decision="approve")
    )
    assert second.packet["parent_packet_id"] == first.packet["id"]
    # Where a packet has ended, a new one asks.
    ask = {**ask, "call_id": "gone"}
    with pytest.raises(baton_client.NoAnswer):
        agent.approve("refund", {}, timeout=1, on_timeout="expire", **ask)
    agent_id, arguments = {"id": "refunds"}, {"tool": "refund", "arguments": {}, "call_id": "gone"}
    ended = agent.ask_approval(body={"agent": agent_id, "action": arguments})  # type: ignore[call-overload]
    wait_for(agent, ended, "expired")
    third = beside(
        lambda: agent.approve("refund", {}, **ask), lambda: deciding(handoff_service, "gone~2", decision="approve")
    )
    assert third.packet["parent_packet_id"] is not None
    assert third.packet["hitl"]["action"]["call_id"] == "gone~2"


PROGRAM = """
import os, sys
from baton_client import Handoff
client = Handoff(os.environ["URL"], os.environ["KEY"], "refunds")

@client.requires_approval()
def refund(order: str, call_id: str) -> str:
    with open(os.environ["LEDGER"], "a") as ledger:
        ledger.write(order + "\\n")
    if os.environ.get("DIES") == "during":
        os._exit(9)
    return "refunded"

if os.environ.get("DIES") == "before":
    client.approve("refund", {"order": "ORD-1"}, call_id=sys.argv[1])
    os._exit(9)
print(refund("ORD-1", sys.argv[1]), end="")
"""


def program(service: Service, key: str, ledger: Path, call_id: str, dies: str = "") -> subprocess.Popen[str]:
    env = {**os.environ, "URL": service.url, "KEY": key, "LEDGER": str(ledger), "DIES": dies}
    env["PYTHONPATH"] = str(Path(baton_client.__file__).parents[1])
    return subprocess.Popen([sys.executable, "-c", PROGRAM, call_id], env=env, stdout=subprocess.PIPE, text=True)


def test_a_program_that_died_goes_on_and_asks_a_person_about_what_may_have_happened(
    handoff_service: Service, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    with Handoff(handoff_service.url, KEY) as admin:
        key = admin.create_key(body={"name": "r", "scopes": ["read", "work"], "agents": ["refunds"]})["key"]
        # A rule that approves does not repeat what may have happened: a person is asked.
        admin.put_policy("small", body={"match": {"tools": ["refund"]}, "rules": [{"then": {"approve": "small"}}]})
        try:
            before = program(handoff_service, key, ledger, "dies before", "before")
            assert before.wait(30) == 9
            assert not ledger.exists()
            again = program(handoff_service, key, ledger, "dies before")
            assert again.communicate(timeout=30)[0] == "refunded"
            assert ledger.read_text() == "ORD-1\n"

            during = program(handoff_service, key, ledger, "dies during", "during")
            assert during.wait(30) == 9
            assert ledger.read_text() == "ORD-1\nORD-1\n"
            again = program(handoff_service, key, ledger, "dies during")
            hitl = deciding(handoff_service, "dies during", decision="reject", message="It was paid")
            assert again.wait(30) == 1
            assert "An execution began at 2" in hitl["reason"]
            assert "and may have happened." in hitl["reason"]
            assert ledger.read_text() == "ORD-1\nORD-1\n"
        finally:
            admin.delete_policy("small")


def test_an_async_function_of_a_worker_numbers_its_calls_within_the_packet(handoff_service: Service) -> None:
    ran: list[str] = []

    async def main() -> Any:
        async with AsyncHandoff(handoff_service.url, KEY) as client:

            @client.requires_approval(exclude_source=False)
            async def send(text: str) -> str:
                ran.append(text)
                return text.upper()

            async def handler(ctx: baton_client.AsyncContext) -> dict[str, Any]:
                return {"context": {"custom": {"sent": [await send("a"), await send("a")]}}}

            stop = asyncio.Event()
            work = asyncio.create_task(client.work("sender", handler, stop=stop))
            packet = await client.create_packet(body=request_for("sender", "x"))
            for count in (1, 2):
                await asyncio.to_thread(deciding, handoff_service, f"{packet['id']}:{count}", decision="approve")
            with Handoff(handoff_service.url, KEY) as admin:
                done = await asyncio.to_thread(wait_for, admin, packet, "completed")
            stop.set()
            await work
            return done["context"]["custom"]["sent"]

    assert asyncio.run(main()) == ["A", "A"]
    assert ran == ["a", "a"]


def test_a_function_of_a_sync_worker_asks_in_a_packet_of_its_own(handoff_service: Service) -> None:
    with Handoff(handoff_service.url, KEY) as client:

        @client.requires_approval(exclude_source=False)
        def pay(amount: int) -> int:
            return amount

        def handler(ctx: Context) -> dict[str, Any]:
            return {"context": {"custom": {"paid": pay(7)}}}

        with working(client, "payer", handler):
            packet = client.create_packet(body=request_for("payer", "x"))
            deciding(handoff_service, f"{packet['id']}:1", decision="approve")
            assert wait_for(client, packet, "completed")["context"]["custom"]["paid"] == 7
        children = client.list_packets(source_agent="payer")["packets"]
        assert [one["status"] for one in children] == ["completed"]
