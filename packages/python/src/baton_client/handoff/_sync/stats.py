# Written by `node scripts/python-client.ts` from the API description; change that, not this file.

from __future__ import annotations

from ..._transport import Connection
from .. import types


class Stats(Connection):
    """Operations of the handoff service: stats."""

    def get_stats(
        self,
        *,
        since: str | None = None,
        timeout: float | None = None,
    ) -> types.Stats:
        """Read statistics.

        How many packets, questions and deliveries wait or are held, and how many ended, by
        hour. Each change of a packet updates the counts of its hour, so the cost of this
        request does not grow with the number of packets. A key that sees its own gets the
        counts of the packets that it sees now, made from their events; it is told of no
        deliveries.

        Needs a key with the scope `read`.

        Args:
            since: Where to begin: by default a day ago, at most 31 days ago. A date or date-time of
              ISO 8601.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Stats = self._send(
            "GET",
            "/api/v1/stats",
            query={
                "since": since,
            },
            timeout=timeout,
        )
        return answer
