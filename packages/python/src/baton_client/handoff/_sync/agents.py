# Written by `node scripts/python-client.ts` from the API description; change that, not this file.

from __future__ import annotations

from collections.abc import Iterator

from ..._transport import Connection, entity_tag, segment
from .. import types


class Agents(Connection):
    """Operations of the handoff service: agents."""

    def list_agents(
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
        answer: types.ListAgentsAnswer = self._send(
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
    ) -> Iterator[types.ListAgentsAnswerAgents]:
        """All items of all pages of `list_agents`; `limit` is the size of a page."""
        return self._pages(
            self.list_agents,
            limit=limit,
            timeout=timeout,
        )

    def publish_contract(
        self,
        agent_id: str,
        *,
        body: types.ContractRequest,
        if_match: int | str | None = None,
        if_none_match: int | str | None = None,
        timeout: float | None = None,
    ) -> types.Contract:
        """Publish an agent's contract.

        From now on every new packet for the agent must satisfy the schema, however it is
        created; others get 400 `CONTRACT_VIOLATION`. Existing packets are not checked.
        Publishing the same document again changes nothing. A key without the scope `manage`
        needs the agent's id in its `agents`.

        Needs a key with the scope `manage` or `work`.

        Args:
            agent_id: The agent's id.
            if_match: The `ETag` that the caller last saw; 412 if the resource has changed since.
            if_none_match: `*`: only if the agent has no contract yet.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Contract = self._send(
            "PUT",
            f"/api/v1/agents/{segment(agent_id)}/contract",
            body=body,
            headers={
                "If-Match": entity_tag(if_match),
                "If-None-Match": entity_tag(if_none_match),
            },
            timeout=timeout,
        )
        return answer

    def get_contract(
        self,
        agent_id: str,
        *,
        if_none_match: int | str | None = None,
        timeout: float | None = None,
    ) -> types.Contract:
        """Get an agent's contract.

        What packets for the agent must contain.

        Needs a key with the scope `read` or `work`.

        Args:
            agent_id: The agent's id.
            if_none_match: The `ETag` that the caller last saw; 304 when the contract has not
              changed since.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Contract = self._send(
            "GET",
            f"/api/v1/agents/{segment(agent_id)}/contract",
            headers={
                "If-None-Match": entity_tag(if_none_match),
            },
            timeout=timeout,
        )
        return answer

    def delete_contract(
        self,
        agent_id: str,
        *,
        if_match: int | str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Remove an agent's contract.

        New packets for the agent are no longer checked. A key without the scope `manage`
        needs the agent's id in its `agents`.

        Needs a key with the scope `manage` or `work`.

        Args:
            agent_id: The agent's id.
            if_match: The `ETag` that the caller last saw; 412 if the resource has changed since.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        self._send(
            "DELETE",
            f"/api/v1/agents/{segment(agent_id)}/contract",
            headers={
                "If-Match": entity_tag(if_match),
            },
            timeout=timeout,
        )

    def list_contracts(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        timeout: float | None = None,
    ) -> types.ListContractsAnswer:
        """List contracts.

        The contracts of all agents, by the id of the agent. Pass `next_cursor` as `cursor`
        for the next page; it is null on the last page.

        Needs a key with the scope `read` or `work`.

        Args:
            limit: The maximum number of items to return; 50 if left out.
            cursor: The `next_cursor` of the previous page.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.ListContractsAnswer = self._send(
            "GET",
            "/api/v1/contracts",
            query={
                "limit": limit,
                "cursor": cursor,
            },
            timeout=timeout,
        )
        return answer

    def iter_list_contracts(
        self,
        *,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> Iterator[types.Contract]:
        """All items of all pages of `list_contracts`; `limit` is the size of a page."""
        return self._pages(
            self.list_contracts,
            limit=limit,
            timeout=timeout,
        )
