# Written by `node scripts/python-client.ts` from the API description; change that, not this file.

from __future__ import annotations

from ..._transport import AsyncConnection, segment
from .. import types


class Sessions(AsyncConnection):
    """Operations of the handoff service: sessions."""

    async def list_sessions(
        self,
        *,
        timeout: float | None = None,
    ) -> types.ListSessionsAnswer:
        """List sessions.

        The sessions of the person who asks; with the scope `manage` those of all people of
        the tenant. 404 without an identity provider (`SERVICE_OIDC_ISSUER`).

        Needs a valid key; each operation checks its rights.

        Args:
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.ListSessionsAnswer = await self._send(
            "GET",
            "/api/v1/sessions",
            timeout=timeout,
        )
        return answer

    async def delete_session(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> None:
        """End a session.

        The person is signed out there: an own session, or with the scope `manage` any of the
        tenant.

        Needs a valid key; each operation checks its rights.

        Args:
            id: The id.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        await self._send(
            "DELETE",
            f"/api/v1/sessions/{segment(id)}",
            timeout=timeout,
        )
