# Written by `node scripts/python-client.ts` from the API description; change that, not this file.
"""Bodies and answers of the handoff service."""

from __future__ import annotations

from typing import TypedDict


class Stats(TypedDict):
    since: str
    """The start of the hour that contains the requested `since`."""
    until: str
    """Now."""
    questions: StatsQuestions
    work: StatsWork
    deliveries: StatsDeliveries
    hours: list[StatsHour]
    """Each hour since `since`, oldest first."""


class StatsQuestions(TypedDict):
    open: int
    """Open questions."""
    oldest_asked_at: str | None
    """When the oldest open question was asked; null without one."""
    answered: int
    """Questions answered since `since`."""
    median_answer_seconds: int | None
    """The median time from a question to its answer, of those answered since `since`, within ten
    percent; null without one.
    """


class StatsWork(TypedDict):
    waiting: int
    """Packets in `created`, which nobody holds."""
    held: int
    """Packets in `claimed` or `in_progress`."""
    oldest_waiting_at: str | None
    """Since when the oldest packet in `created` waits: its creation, or its `not_before` if that
    is later; null without one.
    """
    created: int
    """Packets created since `since`."""
    completed: int
    """Packets completed since `since`."""
    failed: int
    """Packets that failed since `since`."""
    expired: int
    """Packets that expired, or were deleted before they were finished, since `since`."""


class StatsDeliveries(TypedDict):
    waiting: int
    """Deliveries to webhooks and channels that are to be attempted, counted up to 10000."""
    failing: int
    """Webhooks and channels whose last attempt failed."""
    dead_letters: int
    """Deliveries that failed for good and were neither replayed nor removed, counted up to
    10000.
    """


class StatsHour(TypedDict):
    hour: str
    """Its start."""
    created: int
    """Packets created."""
    completed: int
    """Packets completed."""
    failed: int
    """Packets that failed."""
    expired: int
    """Packets that expired or were deleted before they were finished."""
    answered: int
    """Questions answered."""
    waiting: int
    """Packets in `created`."""
    held: int
    """Packets in `claimed` or `in_progress`."""
    asked: int
    """Packets in `awaiting_human`."""
