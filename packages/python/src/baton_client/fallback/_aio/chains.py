# Written by `node scripts/python-client.ts` from the API description; change that, not this file.

from __future__ import annotations

from collections.abc import AsyncIterator

from ..._transport import AsyncConnection, entity_tag, segment
from .. import types


class Chains(AsyncConnection):
    """Operations of the fallback service: chains."""

    async def create_chain(
        self,
        *,
        body: types.ChainRequest,
        timeout: float | None = None,
    ) -> types.Chain:
        """Create a chain.

        An invalid chain gets all faults at once, each with its field. `warnings` lists what
        is valid but may surprise.

        Args:
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Chain = await self._send(
            "POST",
            "/chains",
            body=body,
            timeout=timeout,
        )
        return answer

    async def list_chains(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        if_none_match: int | str | None = None,
        timeout: float | None = None,
    ) -> list[types.Chain]:
        """List all chains.

        Oldest first; all chains, unless `limit` is given. With `If-None-Match` unchanged
        chains are answered with 304 and no body.

        Args:
            limit: The maximum number of chains to return. Default: all.
            offset: How many chains to skip.
            if_none_match: The `ETag` that the caller last saw; 304 if no chain has changed since.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: list[types.Chain] = await self._send(
            "GET",
            "/chains",
            query={
                "limit": limit,
                "offset": offset,
            },
            headers={
                "If-None-Match": entity_tag(if_none_match),
            },
            timeout=timeout,
        )
        return answer

    def iter_list_chains(
        self,
        *,
        limit: int | None = None,
        if_none_match: int | str | None = None,
        timeout: float | None = None,
    ) -> AsyncIterator[types.Chain]:
        """All items of all pages of `list_chains`; `limit` is the size of a page."""
        return self._pages(
            self.list_chains,
            limit=limit,
            if_none_match=if_none_match,
            timeout=timeout,
        )

    async def check_chain(
        self,
        *,
        body: types.ChainRequest,
        timeout: float | None = None,
    ) -> types.ChainCheck:
        """Check a chain without storing it.

        Returns all faults at once, as a create does, or the warnings and the worst case.
        Nothing is stored.

        Args:
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.ChainCheck = await self._send(
            "POST",
            "/chains/check",
            body=body,
            timeout=timeout,
        )
        return answer

    async def get_chain(
        self,
        id: str,
        *,
        if_none_match: int | str | None = None,
        timeout: float | None = None,
    ) -> types.Chain:
        """Get a chain.

        With `If-None-Match` an unchanged chain is answered with 304 and no body.

        Args:
            id: The id.
            if_none_match: The `ETag` that the caller last saw; 304 if the chain has not changed
              since.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Chain = await self._send(
            "GET",
            f"/chains/{segment(id)}",
            headers={
                "If-None-Match": entity_tag(if_none_match),
            },
            timeout=timeout,
        )
        return answer

    async def patch_chain(
        self,
        id: str,
        *,
        body: types.ChainPatch,
        if_match: int | str | None = None,
        timeout: float | None = None,
    ) -> types.Chain:
        """Update a chain.

        A JSON merge patch (RFC 7396): arrays are replaced as a whole, null resets a field to
        its default. The resulting chain is validated like a new one before it is saved.

        Args:
            id: The id.
            if_match: The `ETag` that the caller last saw; 412 if the resource has changed since.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Chain = await self._send(
            "PATCH",
            f"/chains/{segment(id)}",
            body=body,
            headers={
                "If-Match": entity_tag(if_match),
            },
            timeout=timeout,
        )
        return answer

    async def delete_chain(
        self,
        id: str,
        *,
        if_match: int | str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Delete a chain.

        The results of its tests are kept.

        Args:
            id: The id.
            if_match: The `ETag` that the caller last saw; 412 if the resource has changed since.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        await self._send(
            "DELETE",
            f"/chains/{segment(id)}",
            headers={
                "If-Match": entity_tag(if_match),
            },
            timeout=timeout,
        )

    async def get_routing(
        self,
        id: str,
        *,
        provider: str | None = None,
        condition: types.Conditions | None = None,
        status_code: int | None = None,
        timeout: float | None = None,
    ) -> types.Routing:
        """Get routing information.

        What the chain does on every failure of every provider, and the upper bounds of a
        prompt. With `provider` and `condition` also the path of a prompt if this provider
        always fails this way and the others answer. No provider is called.

        Args:
            id: The id.
            provider: Asks what happens if this provider fails ...
            condition: ... in this way.
            status_code: The HTTP status it fails with; the condition's usual one if left out.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Routing = await self._send(
            "GET",
            f"/chains/{segment(id)}/routing",
            query={
                "provider": provider,
                "condition": condition,
                "status_code": status_code,
            },
            timeout=timeout,
        )
        return answer

    async def get_findings(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> list[types.Finding]:
        """Get the findings of the import.

        The findings of the import that made the chain; none after its providers or rules have
        changed.

        Args:
            id: The id.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: list[types.Finding] = await self._send(
            "GET",
            f"/chains/{segment(id)}/findings",
            timeout=timeout,
        )
        return answer

    async def get_summary(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> types.ChainSummary:
        """Get the chain summary.

        A description of the chain in a few sentences, with the underlying facts and the
        latest test.

        Args:
            id: The id.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.ChainSummary = await self._send(
            "GET",
            f"/chains/{segment(id)}/summary",
            timeout=timeout,
        )
        return answer
