# Written by `node scripts/python-client.ts` from the API description; change that, not this file.
"""Bodies and answers of the handoff service."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from ..._compat import NotRequired


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


class AuditHead(TypedDict):
    tenant_id: str
    """A UUID."""
    position: int
    """The position of the last entry; 0 before the first."""
    digest: str
    """Its digest; 64 zeros before the first."""
    at: str | None
    signature: NotRequired[str]
    """In base64, over the canonical JSON (RFC 8785) of the four members above, if the service
    has a key.
    """
    key_id: NotRequired[str]
    """The key of the signature."""


class AuditKeys(TypedDict):
    keys: list[AuditKeysKeys]


class AuditKeysKeys(TypedDict):
    key_id: str
    """The first 16 hexadecimal digits of SHA-256 of the public key (SPKI)."""
    public_key: str
    """The public key (Ed25519) as PEM."""


class ListAuditAnswer(TypedDict):
    entries: list[AuditEntry]
    total: int
    limit: int
    offset: int
    next_cursor: str | None
    """For the next page; null on the last one."""
    total_is: Literal["exact", "at_least"]
    """Whether `total` is the number of entries or a lower bound."""
