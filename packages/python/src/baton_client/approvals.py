"""Approvals: a person or a policy allows a tool call, and it is executed once."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import math
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Literal, TypedDict

from ._transport import json_of
from .errors import (
    ActionFailed,
    ActionRejected,
    BatonError,
    CallChanged,
    ConflictError,
    NoAnswer,
    NotFoundError,
    PayloadTooLargeError,
    ValidationError,
)
from .handoff import types
from .worker import current_task, passing, words_of

log = logging.getLogger("baton_client")

_time_fields = ("timeout_seconds", "on_timeout")
"""What each question takes from the call that asks it."""
_attempts = 8
"""How often the end of an execution is reported while the service is unavailable."""


class ApprovalOptions(TypedDict, total=False):
    """What `approve` and `requires_approval` take beside the call."""

    agent: str | None
    """The id of the agent that asks; by default that of the worker or of the client."""
    reason: str | None
    title: str | None
    description: str | None
    schema: Mapping[str, Any] | None
    """A JSON Schema of the arguments, proposed and edited ones."""
    decisions: Sequence[Literal["approve", "edit", "reject", "respond"]] | None
    valid_seconds: int | None
    """How long an approval can be executed; a day by default."""
    summary: str | None
    context: Mapping[str, Any] | None
    tags: Sequence[str] | None
    subjects: Sequence[str] | None
    priority: str | None
    framework: str | None
    responder: str | None
    exclude_source: bool | None
    """Whether the key that asks may not answer; true by default."""
    timeout: float | None
    """Seconds to wait for a decision; without end by default."""
    on_timeout: Literal["keep", "fail", "expire"] | None
    parent_packet_id: str | None


@dataclass(frozen=True)
class ActionDecision:
    """What was decided about a tool call."""

    decision: Literal["approve", "edit", "reject", "respond"]
    arguments: dict[str, Any]
    """The arguments that were approved; with `edit` they are the person's."""
    message: str | None
    """What the person says to the agent: why it is rejected, or with `respond` what to take instead of the result."""
    packet: types.Packet
    """The packet that asks, with all of the decision in `hitl`."""

    @property
    def approved(self) -> bool:
        """Whether the tool may be called, with `arguments`."""
        return self.decision in ("approve", "edit")

    @property
    def arguments_digest(self) -> str:
        """The digest of the arguments, with which an execution starts."""
        return _decided(self.packet)["arguments_digest"]


Step = Callable[[Any], Any]
"""What a client is told to do: a request, the tool itself, or to sleep for so many seconds."""
Steps = Generator["Step | float", Any, Any]


@dataclass(frozen=True)
class Call:
    """A tool call that needs an approval."""

    action: dict[str, Any]
    fields: dict[str, Any]
    timeout: float | None


def call_of(tool: str, arguments: Mapping[str, Any], call_id: str | None, agent: str | None, options: Any) -> Call:
    """The call to ask about. A call without an id gets that of the worker's packet and a count within its run."""
    return Call(*_parts_of(tool, arguments, call_id, agent, **options))


def _parts_of(
    tool: str,
    arguments: Mapping[str, Any],
    call_id: str | None,
    usual_agent: str | None,
    *,
    agent: str | None = None,
    title: str | None = None,
    description: str | None = None,
    schema: Mapping[str, Any] | None = None,
    decisions: Sequence[str] | None = None,
    valid_seconds: int | None = None,
    framework: str | None = None,
    timeout: float | None = None,
    parent_packet_id: str | None = None,
    reason: str | None = None,
    summary: str | None = None,
    context: Mapping[str, Any] | None = None,
    tags: Sequence[str] | None = None,
    subjects: Sequence[str] | None = None,
    priority: str | None = None,
    responder: str | None = None,
    exclude_source: bool | None = None,
    on_timeout: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], float | None]:
    task = current_task.get()
    if call_id is None and task is not None:
        call_id = task.next_call_id()
        parent_packet_id = parent_packet_id or task.packet["id"]
    agent = agent or (task.agent_id if task is not None else usual_agent)
    if call_id is None:
        raise ValueError(f"The call of {tool} needs a call_id, which is the same when the program is started over.")
    if agent is None:
        raise ValueError("The agent is missing: give `agent`, or make the client with `agent_id`.")
    json_of(arguments)
    action = _given(
        tool=tool,
        arguments=dict(arguments),
        call_id=call_id,
        title=title,
        description=description,
        schema=schema,
        decisions=decisions,
        valid_seconds=valid_seconds,
    )
    fields = _given(
        agent=_given(id=agent, framework=framework),
        reason=reason,
        summary=summary,
        context=context,
        tags=tags,
        subjects=subjects,
        priority=priority,
        responder=responder,
        exclude_source=exclude_source,
        timeout_seconds=None if timeout is None else max(1, math.ceil(timeout)),
        on_timeout=on_timeout,
        parent_packet_id=parent_packet_id,
    )
    return action, fields, timeout


def deciding(call: Call, over: str | None = None) -> Generator[Step | float, Any, ActionDecision]:
    """Asks about the call, or finds what became of it, and waits for the decision.

    Where a question is over without a decision, or its approval is, it is asked anew: in the same packet, or, if that
    has ended, in a new one. `over` is the question whose approval the service calls expired.
    """
    # Counted from before the question is asked, so that it passes before the time of the question.
    until = None if call.timeout is None else time.monotonic() + call.timeout
    packet: types.Packet | None = None
    count = 1
    while True:
        packet = yield from _asked(call, count, packet)
        decided = yield from _decided_in(call, packet, until, over)
        if decided is not None:
            return decided
        count += 1


def _asked(call: Call, count: int, ended: types.Packet | None) -> Generator[Step, Any, types.Packet]:
    """The packet that asks about the call; the next one where all before have ended without an approval."""
    body: dict[str, Any] = {**call.fields, "action": call.action}
    if ended is not None:
        call_id = f"{call.action['call_id']}~{count}"
        body = {**body, "action": {**call.action, "call_id": call_id}, "parent_packet_id": ended["id"]}
    try:
        packet: types.Packet = yield lambda client: client.ask_approval(body=body)
        return packet
    except CallChanged as changed:
        error, packet_id = changed, changed.packet_id
    # A framework that carries an edit calls the tool with what was approved.
    known: types.Packet = yield lambda client: client.get_packet(packet_id)
    if not _is_approved_as(known, call.action):
        raise error
    return known


def _is_approved_as(packet: types.Packet, action: Mapping[str, Any]) -> bool:
    """Whether a packet's action is approved with exactly these arguments."""
    hitl = packet["hitl"]
    decision = None if hitl is None else hitl.get("decision")
    if hitl is None or decision is None or decision["valid_until"] is None:
        return False
    return bool(hitl["action"]["tool"] == action["tool"] and decision["arguments"] == action["arguments"])


def _decided_in(
    call: Call, packet: types.Packet, until: float | None, over: str | None
) -> Generator[Step | float, Any, ActionDecision | None]:
    """The decision in a packet; None if the packet has ended and a new one must ask."""
    waited = False
    while True:
        hitl = packet["hitl"]
        ended = packet["status"] in ("completed", "failed", "expired")
        decision = None if hitl is None else hitl.get("decision")
        if hitl is not None and decision is not None:
            # The service says when an approval has expired: clocks differ.
            if packet["status"] == "expired" and decision["valid_until"] is not None:
                return None
            if hitl["question_id"] != over:
                return ActionDecision(decision["decision"], decision["arguments"], decision["message"], packet)
            packet = yield from asking_anew(call, packet)
            continue
        try:
            state = yield from _state_of(packet)
            if state in ("open", "timed_out") and until is not None and time.monotonic() >= until:
                raise NoAnswer(f"Nobody decided about {call.action['tool']} within {call.timeout} seconds.")
            if state == "open":
                waited = True
                packet = yield _waiting(packet, until)
            elif state == "timed_out" or (state == "withdrawn" and not waited):
                if ended:
                    return None
                packet = yield from asking_anew(call, packet)
            elif state in ("withdrawn", "ended"):
                raise NoAnswer(f"Nobody decided about {call.action['tool']}: the question is {state}.")
            else:
                # It was answered or changed just now.
                packet = yield _reading(packet)
        except passing as error:
            log.warning("Waiting for a decision: %s", error)
            if until is not None and time.monotonic() >= until:
                raise
            yield 1.0


def _reading(packet: types.Packet) -> Step:
    return lambda client: client.get_packet(packet["id"])


def _waiting(packet: types.Packet, until: float | None) -> Step:
    expires_at = packet["hitl"]["expires_at"] if packet["hitl"] is not None else None
    ends = [60.0]
    if until is not None:
        ends.append(until - time.monotonic())
    if expires_at is not None:
        ends.append((_time_of(expires_at) - datetime.now(timezone.utc)).total_seconds())
    seconds = max(1, min(60, math.ceil(min(ends))))
    return lambda client: client.get_packet(packet["id"], wait_seconds=seconds, until_revision=packet["revision"] + 1)


def _state_of(packet: types.Packet) -> Generator[Step, Any, str]:
    """Where the packet's latest question stands."""
    hitl = packet["hitl"]
    question_id = None if hitl is None else hitl["question_id"]
    if hitl is None or question_id is None:
        return "withdrawn"
    if packet["status"] == "awaiting_human" and hitl["expires_at"] is None:
        return "open"
    found: types.QuestionView = yield lambda client: client.get_question(packet["id"], question_id)
    return found["state"]


def asking_anew(call: Call, packet: types.Packet) -> Generator[Step, Any, types.Packet]:
    """Asks the latest question of a packet again. A person is told of an execution that may have happened."""
    found = yield lambda client: client.list_questions(packet["id"], limit=200)
    earlier: types.QuestionView = found["questions"][-1]
    question = {**earlier["question"], **{name: call.fields.get(name) for name in _time_fields}}
    try:
        execution: types.Execution = yield lambda client: client.get_execution(
            packet["id"], question_id=earlier["question_id"]
        )
        if execution["status"] == "started":
            happened = f"An execution began at {execution['started_at']} and may have happened."
            question["reason"] = f"{question['reason']} {happened}".strip()
    except NotFoundError:
        pass
    holder = packet["claimed_by"]
    agent_id = None if holder is None else holder["agent_id"]
    try:
        asked: types.Packet = yield lambda client: client.ask_question(packet["id"], body=question, agent_id=agent_id)
    except ConflictError as error:
        # Another process has asked.
        if error.code != "QUESTION_OPEN":
            raise
        asked = yield _reading(packet)
    return asked


def executing(call: Call, bound: Callable[[dict[str, Any]], Callable[[], Any]]) -> Steps:
    """Asks, waits, and calls the tool once with what was approved; the result is that of the first call.

    Args:
        bound: the call of the tool with approved arguments; it raises if the tool can't take them.
    """
    decision = yield from deciding(call)
    while decision.approved:
        run = bound(decision.arguments)
        begun = yield from _begun(decision)
        if begun is None:
            return (yield from _run(decision, run))
        code, execution = begun
        if execution is not None and execution["status"] == "succeeded":
            return execution["result"]
        if execution is not None and execution["status"] == "failed":
            raise ActionFailed(f"{call.action['tool']} failed: {execution['result']}", execution)
        if execution is not None:
            yield from asking_anew(call, decision.packet)
        hitl = decision.packet["hitl"]
        expired = code == "APPROVAL_EXPIRED" and hitl is not None
        decision = yield from deciding(call, hitl["question_id"] if hitl is not None and expired else None)
    if decision.decision == "respond":
        return decision.message
    raise ActionRejected(decision.message or f"{call.action['tool']} was rejected.", decision)


def _begun(decision: ActionDecision) -> Generator[Step, Any, tuple[str, types.Execution | None] | None]:
    """Starts the execution: None, or why it can't be started, with the execution that has begun before."""
    body = {"arguments_digest": decision.arguments_digest}
    try:
        yield lambda client: client.start_execution(decision.packet["id"], body=body)
    except ConflictError as error:
        if error.code not in ("ALREADY_EXECUTED", "APPROVAL_EXPIRED", "NOT_APPROVED", "DIGEST_MISMATCH"):
            raise
        return error.code, error.body.get("execution")
    return None


def _run(decision: ActionDecision, run: Callable[[], Any]) -> Steps:
    try:
        result = yield lambda _: run()
    except Exception as error:
        yield from _reporting(decision, "failed", words_of(error))
        raise
    yield from _reporting(decision, "succeeded", result)
    return result


def _reporting(decision: ActionDecision, status: str, result: Any) -> Generator[Step | float, Any, None]:
    """Reports the end of the execution. If that fails, it stays `started`: what was executed is not undone."""
    body: dict[str, Any] = {"status": status, "result": _json_or_text(result)}
    hitl = decision.packet["hitl"]
    question_id = None if hitl is None else hitl["question_id"]
    attempt = 0
    while True:
        try:
            yield lambda client: client.end_execution(decision.packet["id"], body=body, question_id=question_id)
            return
        except passing as error:
            attempt += 1
            if attempt >= _attempts:
                log.error("The execution of %s could not be reported: %s", decision.packet["id"], error)
                return
            log.warning("The execution of %s could not be reported: %s", decision.packet["id"], error)
        except (ValidationError, PayloadTooLargeError) as error:
            if "result" not in body:
                log.error("The execution of %s could not be reported: %s", decision.packet["id"], error)
                return
            # Too large: the end is reported without it.
            del body["result"]
            continue
        except BatonError as error:
            log.error("The execution of %s could not be reported: %s", decision.packet["id"], error)
            return
        yield min(10.0, 0.25 * 2.0**attempt)


def _json_or_text(result: Any) -> Any:
    try:
        json_of(result)
    except Exception:
        return str(result)
    return result


class Tool:
    """A function that needs an approval: how its calls are shown, and how it is called with what was approved."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str | None,
        call_id: str | Callable[..., str] | None,
    ) -> None:
        self.function = function
        self.name = name or function.__name__
        self.signature = inspect.signature(function)
        self._call_id = call_id
        for parameter in self.signature.parameters.values():
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                raise TypeError(f"{self.name} takes *{parameter.name}, and arguments that are approved need names.")

    def call(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], agent: str | None, options: Any
    ) -> tuple[Call, Callable[[dict[str, Any]], Callable[[], Any]]]:
        """The call to ask about, and the function that calls the tool with what was approved."""
        kwargs = dict(kwargs)
        given = None if "call_id" in self.signature.parameters else kwargs.pop("call_id", None)
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        shown: dict[str, Any] = {}
        kept: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            taken = _call_id_of(name, value)
            if taken is not None:
                given = given or taken
                kept[name] = value
            elif self.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                shown.update(value)
            else:
                shown[name] = value
        own = self._call_id(*args, **kwargs) if callable(self._call_id) else self._call_id
        return call_of(self.name, shown, own or given, agent, options), functools.partial(self._bound, kept)

    def _bound(self, kept: dict[str, Any], approved: dict[str, Any]) -> Callable[[], Any]:
        """The call of the function with the approved arguments, and with what is no argument of the action."""
        named = {**kept, **approved}
        positional = []
        for name, parameter in self.signature.parameters.items():
            if parameter.kind is inspect.Parameter.POSITIONAL_ONLY and name in named:
                positional.append(named.pop(name))
        try:
            self.signature.bind(*positional, **named)
        except TypeError as error:
            raise TypeError(f"The approved arguments do not fit {self.name}: {error}") from error
        return functools.partial(self.function, *positional, **named)


def _call_id_of(name: str, value: Any) -> str | None:
    """The id that a framework gives to a call: an argument of that name, or the context that it hands in."""
    if name in ("call_id", "tool_call_id") and isinstance(value, str):
        return value
    found = getattr(value, "tool_call_id", None)
    return found if isinstance(found, str) else None


def drive(client: Any, steps: Steps) -> Any:
    """Carries out the steps with a sync client."""
    resume: Callable[[], Any] = functools.partial(next, steps)
    while True:
        try:
            step = resume()
        except StopIteration as done:
            return done.value
        if isinstance(step, float):
            time.sleep(step)
            resume = functools.partial(steps.send, None)
            continue
        try:
            answer = step(client)
        except Exception as error:
            resume = functools.partial(steps.throw, error)
        else:
            resume = functools.partial(steps.send, answer)


async def drive_async(client: Any, steps: Steps) -> Any:
    """Carries out the steps with an async client."""
    resume: Callable[[], Any] = functools.partial(next, steps)
    while True:
        try:
            step = resume()
        except StopIteration as done:
            return done.value
        if isinstance(step, float):
            await asyncio.sleep(step)
            resume = functools.partial(steps.send, None)
            continue
        try:
            answer = step(client)
            if inspect.isawaitable(answer):
                answer = await answer
        except Exception as error:
            resume = functools.partial(steps.throw, error)
        else:
            resume = functools.partial(steps.send, answer)


def _decided(packet: types.Packet) -> types.HitlDecision:
    hitl = packet["hitl"]
    assert hitl is not None
    return hitl["decision"]


def _time_of(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def _given(**fields: Any) -> dict[str, Any]:
    """The fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}
