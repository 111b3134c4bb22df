"""The events of the stream of the handoff service."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from ._sse import ServerSentEvent
from .errors import UnreadableAnswer
from .handoff import types


@dataclass(frozen=True)
class Event:
    """An event, with the packet's summary after the change."""

    id: str | None
    """The id to resume after: `events(last_event_id=...)`."""
    type: str
    """For example `packet.created`. `reset`: events can't be replayed, and the stream continues with new ones."""
    packet_id: str | None
    data: types.PacketSummary | None
    """None for a packet that was removed permanently, and for `reset`."""
    timestamp: str | None
    reason: str | None = None
    """Why the stream was reset."""


def query_of(subscribe: str | Sequence[str] | None) -> dict[str, Any]:
    """The query of the channels to listen to."""
    return {"subscribe": [subscribe] if isinstance(subscribe, str) else subscribe}


def event_of(sent: ServerSentEvent) -> Event | None:
    """The event; None for `connected` and `ping`."""
    if sent.type in ("connected", "ping"):
        return None
    try:
        body = json.loads(sent.data)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise UnreadableAnswer("An event is no JSON object. Check that the base URL leads to the service.")
    data = cast("types.PacketSummary | None", body.get("data"))
    return Event(sent.id, sent.type, body.get("packet_id"), data, body.get("timestamp"), body.get("reason"))
