# Written by `node scripts/python-client.ts` from the API description; change that, not this file.
"""Bodies and answers of the handoff service."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from ..._compat import NotRequired

ErasureStatus = Literal["queued", "running", "done"]


class Erasure(TypedDict):
    id: str
    """A UUID."""
    status: ErasureStatus
    """`done`: everything is erased, and the rest of the receipt is there."""
    packets: int
    """How many packets it erases."""
    not_found: list[str]
    """The ids in `packet_ids` that no packet of the tenant has."""
    subject_digest: str | None
    """SHA-256 of the id of the person, in hexadecimal. The id itself is not kept."""
    reason: str
    requested_by: str
    """Who asked for it."""
    created_at: str
    """When it was asked for."""
    done_at: str | None
    stores: NotRequired[dict[str, Any]]
    """What was erased, by table."""
    delivered: NotRequired[list[ErasureDelivered]]
    """Who had been sent content before, as far as deliveries are kept: they must be asked to
    erase it too.
    """
    backups_before: NotRequired[str]
    """Backups that are older than this may still hold the content."""


class ErasureDelivered(TypedDict):
    kind: str
    """`webhook`, `push`, `email` or `slack`."""
    id: str
    """The id of the webhook, push notification configuration or channel."""
    target: str
    """Its address, without what may be a secret."""
    count: int
    """How many deliveries had gone out, or may have."""


class ErasureRequest(TypedDict):
    subject: NotRequired[str | None]
    """The id of a person: all packets whose `metadata.subjects` name it are erased."""
    packet_ids: NotRequired[list[str] | None]
    """The packets to erase, instead of `subject`."""
    reason: str
    """Why, for the audit log. Do not name the person."""


class ListErasuresAnswer(TypedDict):
    erasures: list[Erasure]
    total: int
    limit: int
    offset: int
    next_cursor: str | None
