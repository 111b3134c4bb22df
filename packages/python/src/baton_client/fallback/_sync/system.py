# Written by `node scripts/python-client.ts` from the API description; change that, not this file.

from __future__ import annotations

from ..._transport import Connection
from .. import types


class System(Connection):
    """Operations of the fallback service: system."""

    def get_access(
        self,
        *,
        timeout: float | None = None,
    ) -> types.AccessInfo:
        """What this key may do.

        The caller's label and rights, and whether tests may send requests.

        Args:
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.AccessInfo = self._send(
            "GET",
            "/access",
            timeout=timeout,
        )
        return answer

    def health(
        self,
        *,
        timeout: float | None = None,
    ) -> types.HealthAnswer:
        """Whether the process runs.

        Liveness. Restart a process that does not answer.

        Args:
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.HealthAnswer = self._send(
            "GET",
            "/health",
            timeout=timeout,
        )
        return answer

    def ready(
        self,
        *,
        timeout: float | None = None,
    ) -> types.HealthAnswer:
        """Whether the database answers, and has space.

        Readiness: the database is connected, and writes find space on its disk. Send requests
        to this instance only while it answers 200.

        Args:
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.HealthAnswer = self._send(
            "GET",
            "/ready",
            timeout=timeout,
        )
        return answer

    def metrics(
        self,
        *,
        timeout: float | None = None,
    ) -> str:
        """Metrics in Prometheus text format.

        Counters of requests and of what the service does, latencies by route, and gauges of
        the database and the queues. Public, unless the service has a metrics token.

        Args:
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: str = self._send(
            "GET",
            "/metrics",
            timeout=timeout,
        )
        return answer
