"""What a worker's questions promise: each handler gets the answer to its own question, once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import baton_client
from baton_client import AsyncContext, AsyncHandoff, Context, Handoff
from baton_client.worker import Task
from conftest import KEY, Service
from test_client import request_for, wait_for


@contextmanager
def working(client: Handoff, agent: str, handler: Any) -> Iterator[None]:
    stop = threading.Event()
    worker = threading.Thread(target=client.work, args=(agent, handler), kwargs={"stop": stop, "lease_seconds": 5})
    worker.start()
    try:
        yield
    finally:
        stop.set()
        worker.join(10)


def answer(client: Handoff, packet: Any, response: str) -> str:
    asked = wait_for(client, packet, "awaiting_human")
    assert asked["hitl"] is not None
    client.respond_packet(packet["id"], body={"response": response, "responded_by": "dana"})
    return asked["hitl"]["question"]


def test_the_same_text_is_asked_twice_and_answered_twice(handoff_service: Service) -> None:
    def handler(ctx: Context) -> dict[str, Any]:
        answers = [ctx.ask("Refund?").get("response") for _ in range(2)]
        return {"context": {"custom": {"answers": answers}}}

    with Handoff(handoff_service.url, KEY) as client, working(client, "twice", handler):
        packet = client.create_packet(body=request_for("twice", "x"))
        answer(client, packet, "first")
        answer(client, packet, "second")
        assert wait_for(client, packet, "completed")["context"]["custom"]["answers"] == ["first", "second"]


def test_a_handler_that_starts_over_gets_its_answers_and_an_earlier_one_for_no_other_question(
    handoff_service: Service,
) -> None:
    runs: list[Any] = []

    def handler(ctx: Context) -> dict[str, Any] | None:
        amount = 100 if not runs else 200
        runs.append(ctx)
        first = ctx.ask("Refund?").get("response")
        try:
            ctx.ask(f"Pay {amount}?", key="pay")
        except baton_client.QuestionChanged as error:
            assert error.question is not None and error.answer is not None
            custom = {"first": first, "was": [error.question["question"], error.answer["response"]]}
            return {"context": {"custom": custom}}
        # Another worker starts over, as after the end of this process.
        ctx._task.lost.set()
        return None

    with Handoff(handoff_service.url, KEY) as client, working(client, "again", handler):
        packet = client.create_packet(body=request_for("again", "x"))
        answer(client, packet, "yes")
        answer(client, packet, "paid")
        custom = wait_for(client, packet, "completed")["context"]["custom"]
        assert custom == {"first": "yes", "was": ["Pay 100?", "paid"]}


def test_questions_asked_at_once_wait_their_turn(handoff_service: Service) -> None:
    async def handler(ctx: AsyncContext) -> dict[str, Any]:
        one, other = await asyncio.gather(ctx.ask("Refund 10 to Ann?"), ctx.ask("Delete the account of Bob?"))
        return {"context": {"custom": {"ann": one.get("response"), "bob": other.get("response")}}}

    async def main() -> None:
        stop = asyncio.Event()
        async with AsyncHandoff(handoff_service.url, KEY) as client:
            work = asyncio.create_task(client.work("gather", handler, stop=stop))
            with Handoff(handoff_service.url, KEY) as person:
                packet = await asyncio.to_thread(person.create_packet, body=request_for("gather", "x"))
                asked = [await asyncio.to_thread(answer, person, packet, response) for response in ("yes", "no")]
                assert asked == ["Refund 10 to Ann?", "Delete the account of Bob?"]
                done = await asyncio.to_thread(wait_for, person, packet, "completed")
            assert done["context"]["custom"] == {"ann": "yes", "bob": "no"}
            stop.set()
            await work

    asyncio.run(main())


def test_a_question_that_nobody_answers_is_withdrawn_and_the_handler_ends_the_packet(handoff_service: Service) -> None:
    def handler(ctx: Context) -> dict[str, Any]:
        with pytest.raises(baton_client.BatonError, match="Nobody answered: Nobody\\?"):
            ctx.ask("Nobody?", timeout=1)
        return {"context": {"custom": {"answered": False}}}

    with Handoff(handoff_service.url, KEY) as client, working(client, "nobody", handler):
        packet = client.create_packet(body=request_for("nobody", "x"))
        assert wait_for(client, packet, "completed")["context"]["custom"]["answered"] is False
        assert [one["state"] for one in client.list_questions(packet["id"])["questions"]] == ["timed_out"]


def test_an_answer_that_is_given_while_the_question_is_withdrawn_counts(
    handoff_service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def handler(ctx: AsyncContext) -> dict[str, Any]:
        withdraw = ctx._task.client.withdraw_question

        async def late(packet_id: str, **how: Any) -> Any:
            await ctx._task.client.respond_packet(packet_id, body={"response": "just now", "responded_by": "dana"})
            return await withdraw(packet_id, **how)

        monkeypatch.setattr(ctx._task.client, "withdraw_question", late)
        answer = await ctx.ask("Refund?", timeout=0)
        return {"context": {"custom": {"answer": answer["response"]}}}

    async def main() -> None:
        stop = asyncio.Event()
        async with AsyncHandoff(handoff_service.url, KEY) as client:
            work = asyncio.create_task(client.work("late", handler, stop=stop))
            with Handoff(handoff_service.url, KEY) as person:
                packet = await asyncio.to_thread(person.create_packet, body=request_for("late", "x"))
                done = await asyncio.to_thread(wait_for, person, packet, "completed")
            assert done["context"]["custom"] == {"answer": "just now"}
            stop.set()
            await work

    asyncio.run(main())


def test_a_question_has_the_options_it_was_asked_with(handoff_service: Service) -> None:
    action: Any = {"tool": "refund", "arguments": {"amount": 5}}
    asked: list[dict[str, Any]] = [
        {"reason": "Over 50", "responder": "dana", "exclude_source": False, "require_verified": True, "action": action},
        {"options": ["yes", "no"], "strict_options": True, "on_timeout": "keep", "remind_after_seconds": 60},
        {"schema": {"type": "object", "properties": {"amount": {"type": "integer"}}}},
    ]

    def handler(ctx: Context) -> dict[str, Any]:
        for options in asked:
            with pytest.raises(baton_client.NoAnswer):
                ctx.ask("Refund?", timeout=0, **options)
        with pytest.raises(TypeError, match="ask has no option require_verifed"):
            ctx.ask("Refund?", require_verifed=True)  # type: ignore[call-arg]
        return {}

    with Handoff(handoff_service.url, KEY) as client, working(client, "options", handler):
        packet = client.create_packet(body=request_for("options", "x"))
        assert wait_for(client, packet, "completed")["status"] == "completed"
        found = [dict(one["question"]) for one in client.list_questions(packet["id"])["questions"]]
        found[0]["action"] = {name: found[0]["action"][name] for name in action}  # type: ignore[index]
        assert [{name: one[name] for name in options} for one, options in zip(found, asked, strict=True)] == asked


def test_a_question_that_is_over_is_withdrawn_although_its_packet_changes_meanwhile(
    handoff_service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    withdraw = AsyncHandoff.withdraw_question
    state = iter([412, 412])

    async def changed(self: AsyncHandoff, *given: Any, if_match: Any = None, **options: Any) -> Any:
        # As if another agent had changed the packet just before.
        wrong = next(state, None)
        return await withdraw(self, *given, if_match=if_match if wrong is None else 0, **options)

    monkeypatch.setattr(AsyncHandoff, "withdraw_question", changed)
    follow = Task._follow

    async def over(self: Task, asked: Any) -> Any:
        return {**await follow(self, asked), "state": "timed_out"}

    monkeypatch.setattr(Task, "_follow", over)

    def handler(ctx: Context) -> dict[str, Any]:
        with pytest.raises(baton_client.NoAnswer):
            ctx.ask("Refund?", timeout=1, on_timeout="keep")
        seen.append(client.get_packet(ctx.packet["id"])["status"])
        return {}

    with Handoff(handoff_service.url, KEY) as client, working(client, "changes", handler):
        packet = client.create_packet(body=request_for("changes", "x"))
        assert wait_for(client, packet, "completed")["status"] == "completed"
    assert seen == ["claimed"]
