# Written by `node scripts/python-client.ts` from the API description; change that, not this file.
"""Bodies and answers of the handoff service."""

from __future__ import annotations

from typing import Literal, TypedDict

from ..._compat import NotRequired
from .common import CreateRequest

Missed = Literal["skip", "latest", "all"]


class Schedule(TypedDict):
    name: str
    """Its name."""
    version: int
    """The number of the version. Each change increments it, also after a removal."""
    cron: str
    """Five fields (minute, hour, day of the month, month, day of the week), or `@weekly` and the
    like.
    """
    timezone: str
    """The IANA name of the time zone in which `cron` is read."""
    active: bool
    """Whether it runs. Default: true."""
    missed: Missed
    """What happens to times that are more than 60 seconds past, since the service was down:
    `skip` makes no packets for them, `latest`, the default, makes one for the latest, `all`
    one for each of the latest 100.
    """
    packet: CreateRequest
    next_at: str | None
    """When it runs next; null while it is switched off."""
    last_at: str | None
    last_packet_id: str | None
    """The packet that its last time made."""
    last_error: ScheduleLastError | None
    """Why its last time made no packet; null if that made one."""
    disabled_reason: str | None
    """Why the service has switched it off; the next change switches it on again."""
    created_at: str
    """When it was first written, or written again after a removal."""
    updated_at: str
    """When its version was written."""


class ScheduleLastError(TypedDict):
    """Why its last time made no packet."""

    at: str
    """The time that made no packet."""
    code: str
    """The code of the refusal, as for a create."""
    detail: str
    """The refusal."""


class ScheduleRequest(TypedDict):
    cron: str
    """Five fields (minute, hour, day of the month, month, day of the week), or `@weekly` and the
    like.
    """
    timezone: str
    """The IANA name of the time zone in which `cron` is read."""
    packet: CreateRequest
    active: NotRequired[bool | None]
    """Whether it runs. Default: true."""
    missed: NotRequired[Missed | None]
    """What happens to times that are more than 60 seconds past, since the service was down:
    `skip` makes no packets for them, `latest`, the default, makes one for the latest, `all`
    one for each of the latest 100.
    """


class ListSchedulesAnswer(TypedDict):
    schedules: list[Schedule]
    total: int
    limit: int
    offset: int


class NextTimesAnswer(TypedDict):
    times: list[str]
