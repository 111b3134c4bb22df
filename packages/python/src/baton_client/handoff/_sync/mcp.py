# Written by `node scripts/python-client.ts` from the API description; change that, not this file.

from __future__ import annotations

from typing import Any

from ..._transport import Connection
from .. import types


class Mcp(Connection):
    """Operations of the handoff service: mcp."""

    def mcp(
        self,
        *,
        body: types.McpRequest,
        agent_id: str | None = None,
        timeout: float | None = None,
    ) -> Any | None:
        """Model Context Protocol (Streamable HTTP).

        A message of JSON-RPC 2.0 as the Model Context Protocol defines it, in its revisions
        2026-07-28 and 2025-11-25. The server keeps no sessions: any instance answers any
        request.

        The key is sent in `X-API-Key`, as `Authorization: Bearer`, or in `api_key`. `Host`
        and `Origin` must name this machine, `SERVICE_HOST` or one of `SERVICE_ALLOWED_HOSTS`.

        An operation that the service refuses is the result of its tool, with `isError`; a
        call of a tool counts as one request.

        Needs a valid key; each operation checks its rights.

        Args:
            agent_id: The agent to record as the actor in history and audit log. 1 to 255
              characters.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: Any | None = self._send(
            "POST",
            "/mcp",
            body=body,
            headers={
                "X-Agent-Id": agent_id or self._agent_id,
            },
            timeout=timeout,
        )
        return answer
