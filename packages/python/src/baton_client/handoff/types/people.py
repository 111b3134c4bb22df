# Written by `node scripts/python-client.ts` from the API description; change that, not this file.
"""Bodies and answers of the handoff service."""

from __future__ import annotations

from typing import Literal, TypedDict

Methods = Literal["sign_in", "key", "link"]


class Person(TypedDict):
    name: str
    """The name that the answers carry."""
    groups: list[str]
    """The groups at the last sign-in."""
    methods: list[Methods]
    """How the person answers: by signing in, by a key with this `responder`, or by the links of
    a channel with this `responder`.
    """
    last_seen_at: str | None
    """Null if nobody signed in under the name."""
    suspended: bool
    """Whether the person answers nothing, on any way."""


class ListPeopleAnswer(TypedDict):
    people: list[Person]
    total: int
    limit: int
    offset: int
