# Written by `node scripts/python-client.ts` from the API description; change that, not this file.

from __future__ import annotations

from ..._transport import AsyncConnection, segment
from .. import types


class AnswerLinks(AsyncConnection):
    """Operations of the handoff service: answer links."""

    async def create_answer_link(
        self,
        id: str,
        *,
        body: types.AnswerLinkRequest | None = None,
        timeout: float | None = None,
    ) -> types.NewAnswerLink:
        """Make an answer link for a packet's question.

        The link leads to a page that shows the question and takes the answer, without a key.
        It ends when the question is answered in any way, when it expires or is revoked, and
        when the key that made it is revoked.

        Needs a key with the scope `respond`.

        Args:
            id: The id.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.NewAnswerLink = await self._send(
            "POST",
            f"/api/v1/packets/{segment(id)}/answer-links",
            body={} if body is None else body,
            timeout=timeout,
        )
        return answer

    async def list_answer_links(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> list[types.AnswerLink]:
        """List a packet's answer links.

        The links, newest first, without their URLs. A link is removed 30 days after it has
        expired.

        Needs a key with the scope `read` or `respond`.

        Args:
            id: The id.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: list[types.AnswerLink] = await self._send(
            "GET",
            f"/api/v1/packets/{segment(id)}/answer-links",
            timeout=timeout,
        )
        return answer

    async def delete_answer_link(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> None:
        """Revoke an answer link.

        Its page refuses answers from now on.

        Needs a key with the scope `respond`.

        Args:
            id: The id.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        await self._send(
            "DELETE",
            f"/api/v1/answer-links/{segment(id)}",
            timeout=timeout,
        )
