# Written by `node scripts/python-client.ts` from the API description; change that, not this file.
"""Bodies and answers of the handoff service."""

from __future__ import annotations

from typing import Any, TypedDict

from ..._compat import NotRequired


class Contract(TypedDict):
    agent_id: str
    """The id of the agent."""
    version: int
    """The number of the version. Each change increments it, also after a removal."""
    schema: dict[str, Any]
    """A JSON Schema (2020-12) for `{context, decisions, actions, dependencies, metadata}` of the
    create request as it is sent: at most 32 KiB, 12 schemas deep, 500 keywords. `$ref` points
    into the document itself; patterns run in linear time (RE2).
    """
    description: str | None
    """What the agent needs, in words for those that hand over to it."""
    examples: list[dict[str, Any]]
    """Packets that satisfy the schema, at most 32 KiB together."""
    created_at: str
    """When it was first published, or published again after a removal."""
    updated_at: str
    """When its version was published."""


class ContractRequest(TypedDict):
    schema: dict[str, Any]
    """A JSON Schema (2020-12) for `{context, decisions, actions, dependencies, metadata}` of the
    create request as it is sent: at most 32 KiB, 12 schemas deep, 500 keywords. `$ref` points
    into the document itself; patterns run in linear time (RE2).
    """
    description: NotRequired[str | None]
    """What the agent needs, in words for those that hand over to it."""
    examples: NotRequired[list[dict[str, Any]] | None]
    """Packets that satisfy the schema, at most 32 KiB together."""


class ListAgentsAnswer(TypedDict):
    agents: list[ListAgentsAnswerAgents]
    total: int
    limit: int
    offset: int


class ListAgentsAnswerAgents(TypedDict):
    agent_id: str
    last_seen_at: str
    """When a request last named it: as source, as claimant or in X-Agent-Id."""
    holding: int
    """How many open packets it holds."""
    waiting: int
    """How many packets in `created` have it as their target."""
    contract: int | None
    """The version of its contract; null if it has none."""


class ListContractsAnswer(TypedDict):
    contracts: list[Contract]
    next_cursor: str | None
