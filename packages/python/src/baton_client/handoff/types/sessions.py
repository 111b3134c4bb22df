# Written by `node scripts/python-client.ts` from the API description; change that, not this file.
"""Bodies and answers of the handoff service."""

from __future__ import annotations

from typing import TypedDict


class Session(TypedDict):
    id: str
    """A UUID."""
    person: str
    """The name of the person."""
    created_at: str
    """When the person signed in."""
    last_seen_at: str
    """When the session was used last, to the minute."""
    expires_at: str
    """When it ends at the latest."""
    current: bool
    """Whether it is the session of this request."""


class ListSessionsAnswer(TypedDict):
    sessions: list[Session]
