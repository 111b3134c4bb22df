# Written by `node scripts/python-client.ts` from the API description; change that, not this file.
"""Bodies and answers of the handoff service."""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class AuditEntry(TypedDict):
    id: str
    """A UUID."""
    packet_id: str | None
    actor: str
    """Who did it."""
    key_id: str | None
    """The API key that was used; null when the service itself acted."""
    action: str
    """What happened."""
    resource: str
    """The kind of resource."""
    details: dict[str, Any]
    """What was done; empty once the packet is erased."""
    timestamp: str
    """When it happened."""


class ListAuditAnswer(TypedDict):
    entries: list[AuditEntry]
    total: int
    limit: int
    offset: int
    total_is: Literal["exact", "at_least"]
    """Whether `total` is the number of entries or a lower bound."""
