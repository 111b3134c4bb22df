# Written by `node scripts/python-client.ts` from the API description; change that, not this file.

from __future__ import annotations

from collections.abc import Iterator

from ..._transport import Connection
from .. import types


class Audit(Connection):
    """Operations of the handoff service: audit."""

    def list_audit(
        self,
        *,
        actor: str | None = None,
        action: str | None = None,
        packet_id: str | None = None,
        created_after: str | None = None,
        created_before: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
        timeout: float | None = None,
    ) -> types.ListAuditAnswer:
        """Read the audit log.

        The history of all the tenant's packets, and the changes to its keys, newest first.
        Filters are combined with AND.

        Needs a key with the scope `read`.

        Args:
            actor: Who did it.
            action: What happened.
            packet_id: The packet it happened to.
            created_after: At or after this moment. A date or date-time of ISO 8601.
            created_before: At or before this moment. A date or date-time of ISO 8601.
            limit: The maximum number of items to return.
            offset: How many items to skip.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.ListAuditAnswer = self._send(
            "GET",
            "/api/v1/audit",
            query={
                "actor": actor,
                "action": action,
                "packet_id": packet_id,
                "created_after": created_after,
                "created_before": created_before,
                "limit": limit,
                "offset": offset,
            },
            timeout=timeout,
        )
        return answer

    def iter_list_audit(
        self,
        *,
        actor: str | None = None,
        action: str | None = None,
        packet_id: str | None = None,
        created_after: str | None = None,
        created_before: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> Iterator[types.AuditEntry]:
        """All items of all pages of `list_audit`; `limit` is the size of a page."""
        return self._pages(
            self.list_audit,
            actor=actor,
            action=action,
            packet_id=packet_id,
            created_after=created_after,
            created_before=created_before,
            limit=limit,
            timeout=timeout,
        )
