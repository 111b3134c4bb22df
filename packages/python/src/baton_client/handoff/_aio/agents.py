# Written by `node scripts/python-client.ts` from the API description; change that, not this file.

from __future__ import annotations

from collections.abc import AsyncIterator

from ..._transport import AsyncConnection
from .. import types


class Agents(AsyncConnection):
    """Operations of the handoff service: agents."""

    async def list_agents(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        timeout: float | None = None,
    ) -> types.ListAgentsAnswer:
        """List agents.

        The agents that the tenant's requests have named, most recently seen first.

        Needs a key with the scope `read`.

        Args:
            limit: The maximum number of items to return.
            offset: How many items to skip.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.ListAgentsAnswer = await self._send(
            "GET",
            "/api/v1/agents",
            query={
                "limit": limit,
                "offset": offset,
            },
            timeout=timeout,
        )
        return answer

    def iter_list_agents(
        self,
        *,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> AsyncIterator[types.ListAgentsAnswerAgents]:
        """All items of all pages of `list_agents`; `limit` is the size of a page."""
        return self._pages(
            self.list_agents,
            limit=limit,
            timeout=timeout,
        )
