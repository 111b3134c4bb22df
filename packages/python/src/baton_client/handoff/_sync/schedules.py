# Written by `node scripts/python-client.ts` from the API description; change that, not this file.

from __future__ import annotations

from collections.abc import Iterator

from ..._transport import Connection, entity_tag, new_key, segment
from .. import types


class Schedules(Connection):
    """Operations of the handoff service: schedules."""

    def put_schedule(
        self,
        name: str,
        *,
        body: types.ScheduleRequest,
        if_match: int | str | None = None,
        if_none_match: int | str | None = None,
        timeout: float | None = None,
    ) -> types.Schedule:
        """Write a schedule.

        At each time that `cron` names in the time zone, the service creates `packet` in the
        name of the key or person that wrote the schedule, with `metadata.schedule`. A time
        that the clock leaves out runs when it goes on, one that it shows twice runs the first
        time; with `*` or `*/n` as hour, times follow one another in real time. Needs an API
        key, or a person who signed in.

        Needs a key with the scope `work`.

        Args:
            name: The name of the schedule.
            if_match: The `ETag` that the caller last saw; 412 if the resource has changed since.
            if_none_match: `*`: only if there is no such schedule yet.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Schedule = self._send(
            "PUT",
            f"/api/v1/schedules/{segment(name)}",
            body=body,
            headers={
                "If-Match": entity_tag(if_match),
                "If-None-Match": entity_tag(if_none_match),
            },
            timeout=timeout,
        )
        return answer

    def get_schedule(
        self,
        name: str,
        *,
        timeout: float | None = None,
    ) -> types.Schedule:
        """Get a schedule.

        Get a schedule.

        Needs a key with the scope `read` or `work`.

        Args:
            name: The name of the schedule.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Schedule = self._send(
            "GET",
            f"/api/v1/schedules/{segment(name)}",
            timeout=timeout,
        )
        return answer

    def delete_schedule(
        self,
        name: str,
        *,
        if_match: int | str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Remove a schedule.

        Packets that it has made stay.

        Needs a key with the scope `work`.

        Args:
            name: The name of the schedule.
            if_match: The `ETag` that the caller last saw; 412 if the resource has changed since.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        self._send(
            "DELETE",
            f"/api/v1/schedules/{segment(name)}",
            headers={
                "If-Match": entity_tag(if_match),
            },
            timeout=timeout,
        )

    def list_schedules(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        timeout: float | None = None,
    ) -> types.ListSchedulesAnswer:
        """List schedules.

        The schedules, by name.

        Needs a key with the scope `read` or `work`.

        Args:
            limit: The maximum number of items to return.
            offset: How many items to skip.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.ListSchedulesAnswer = self._send(
            "GET",
            "/api/v1/schedules",
            query={
                "limit": limit,
                "offset": offset,
            },
            timeout=timeout,
        )
        return answer

    def iter_list_schedules(
        self,
        *,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> Iterator[types.Schedule]:
        """All items of all pages of `list_schedules`; `limit` is the size of a page."""
        return self._pages(
            self.list_schedules,
            limit=limit,
            timeout=timeout,
        )

    def run_schedule(
        self,
        name: str,
        *,
        idempotency_key: str | None = None,
        agent_id: str | None = None,
        timeout: float | None = None,
    ) -> types.Packet:
        """Run a schedule now.

        Creates the packet of the schedule in the name of the caller. Its times stay as they
        are.

        Needs a key with the scope `work`.

        Args:
            name: The name of the schedule.
            idempotency_key: For 24 hours, a repeated request with the same key returns the first
              answer. 1 to 255 characters.
            agent_id: The agent to record as the actor in history and audit log. 1 to 255
              characters.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Packet = self._send(
            "POST",
            f"/api/v1/schedules/{segment(name)}/run",
            headers={
                "Idempotency-Key": idempotency_key or new_key(),
                "X-Agent-Id": agent_id or self._agent_id,
            },
            timeout=timeout,
        )
        return answer

    def next_times(
        self,
        name: str,
        *,
        count: int | None = None,
        timeout: float | None = None,
    ) -> types.NextTimesAnswer:
        """List the next times of a schedule.

        Its times from now on, also while it is switched off.

        Needs a key with the scope `read` or `work`.

        Args:
            name: The name of the schedule.
            count: How many times to return; 5 if left out.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.NextTimesAnswer = self._send(
            "GET",
            f"/api/v1/schedules/{segment(name)}/next",
            query={
                "count": count,
            },
            timeout=timeout,
        )
        return answer
