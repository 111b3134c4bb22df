# Written by `node scripts/python-client.ts` from the API description; change that, not this file.

from __future__ import annotations

from collections.abc import AsyncIterator

from ..._transport import AsyncConnection, segment
from .. import types


class Erasures(AsyncConnection):
    """Operations of the handoff service: erasures."""

    async def create_erasure(
        self,
        *,
        body: types.ErasureRequest,
        timeout: float | None = None,
    ) -> types.Erasure:
        """Erase packets.

        Erases the content of all packets that hold data of a person, or of those named:
        conversations, questions, answers, details of their entries in the audit log,
        deliveries, index entries. The packets stay, with their ids, statuses and times. The
        work goes on in the background, also after a restart; `GET /erasures/{id}` has its
        receipt. 409 while a schedule makes packets about the person.

        Needs a key with the scope `erase`.

        Args:
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Erasure = await self._send(
            "POST",
            "/api/v1/erasures",
            body=body,
            timeout=timeout,
        )
        return answer

    async def list_erasures(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        cursor: str | None = None,
        timeout: float | None = None,
    ) -> types.ListErasuresAnswer:
        """List erasures.

        Newest first.

        Needs a key with the scope `erase`.

        Args:
            limit: The maximum number of items to return.
            offset: How many items to skip.
            cursor: The `next_cursor` of the previous page; must not be combined with `offset`.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.ListErasuresAnswer = await self._send(
            "GET",
            "/api/v1/erasures",
            query={
                "limit": limit,
                "offset": offset,
                "cursor": cursor,
            },
            timeout=timeout,
        )
        return answer

    def iter_list_erasures(
        self,
        *,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> AsyncIterator[types.Erasure]:
        """All items of all pages of `list_erasures`; `limit` is the size of a page."""
        return self._pages(
            self.list_erasures,
            limit=limit,
            timeout=timeout,
        )

    async def get_erasure(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> types.Erasure:
        """Get an erasure.

        Once it is done, the answer is the receipt. The audit log has the SHA-256 of its
        canonical JSON (RFC 8785).

        Needs a key with the scope `erase`.

        Args:
            id: The id.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Erasure = await self._send(
            "GET",
            f"/api/v1/erasures/{segment(id)}",
            timeout=timeout,
        )
        return answer
