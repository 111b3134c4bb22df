# Written by `node scripts/python-client.ts` from the API description; change that, not this file.

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Literal

from ..._transport import AsyncConnection
from .. import types


class Audit(AsyncConnection):
    """Operations of the handoff service: audit."""

    async def list_audit(
        self,
        *,
        actor: str | None = None,
        action: str | None = None,
        packet_id: str | None = None,
        key_id: str | None = None,
        person: str | None = None,
        subject: str | None = None,
        created_after: str | None = None,
        created_before: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
        cursor: str | None = None,
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
            key_id: The key that was used.
            person: The name, or the identity provider's id, of a person who signed in and did it.
            subject: The id of a person whose data its packet holds.
            created_after: At or after this moment. A date or date-time of ISO 8601.
            created_before: At or before this moment. A date or date-time of ISO 8601.
            limit: The maximum number of items to return.
            offset: How many items to skip.
            cursor: The `next_cursor` of the previous page, which new entries do not shift; must not
              be combined with `offset`.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.ListAuditAnswer = await self._send(
            "GET",
            "/api/v1/audit",
            query={
                "actor": actor,
                "action": action,
                "packet_id": packet_id,
                "key_id": key_id,
                "person": person,
                "subject": subject,
                "created_after": created_after,
                "created_before": created_before,
                "limit": limit,
                "offset": offset,
                "cursor": cursor,
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
        key_id: str | None = None,
        person: str | None = None,
        subject: str | None = None,
        created_after: str | None = None,
        created_before: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> AsyncIterator[types.AuditEntry]:
        """All items of all pages of `list_audit`; `limit` is the size of a page."""
        return self._pages(
            self.list_audit,
            actor=actor,
            action=action,
            packet_id=packet_id,
            key_id=key_id,
            person=person,
            subject=subject,
            created_after=created_after,
            created_before=created_before,
            limit=limit,
            timeout=timeout,
        )

    async def audit_head(
        self,
        *,
        timeout: float | None = None,
    ) -> types.AuditHead:
        """Read the end of the audit log.

        Each entry has the digest of what it says and of the entry before it, so the last
        digest stands for the whole log. A head that is kept elsewhere shows later whether
        anything before it was changed or removed.

        Needs a key with the scope `manage`.

        Args:
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.AuditHead = await self._send(
            "GET",
            "/api/v1/audit/head",
            timeout=timeout,
        )
        return answer

    async def audit_keys(
        self,
        *,
        timeout: float | None = None,
    ) -> types.AuditKeys:
        """List the keys that sign heads.

        List the keys that sign heads.

        Needs a key with the scope `manage`.

        Args:
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.AuditKeys = await self._send(
            "GET",
            "/api/v1/audit/keys",
            timeout=timeout,
        )
        return answer

    async def export_audit(
        self,
        *,
        from_: int | None = None,
        to: int | None = None,
        format: Literal["jsonl", "csv"] | None = None,
        actor: str | None = None,
        action: str | None = None,
        packet_id: str | None = None,
        key_id: str | None = None,
        person: str | None = None,
        subject: str | None = None,
        created_after: str | None = None,
        created_before: str | None = None,
        timeout: float | None = None,
    ) -> str:
        """Export the audit log.

        JSON Lines: a line with the header, one for each entry in the order of positions with
        what its digest covers, and the head. `salt` and `details` are null once they are
        erased. With a filter only the entries are checked, not that none is missing.

        Needs a key with the scope `manage`.

        Args:
            from_: The first position; by default 1.
            to: The last position; by default that of the head.
            format: `csv`: a table for spreadsheets, without digests.
            actor: Who did it.
            action: What happened.
            packet_id: The packet it happened to.
            key_id: The key that was used.
            person: The name, or the identity provider's id, of a person who signed in and did it.
            subject: The id of a person whose data its packet holds.
            created_after: At or after this moment. A date or date-time of ISO 8601.
            created_before: At or before this moment. A date or date-time of ISO 8601.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: str = await self._send(
            "GET",
            "/api/v1/audit/export",
            query={
                "from": from_,
                "to": to,
                "format": format,
                "actor": actor,
                "action": action,
                "packet_id": packet_id,
                "key_id": key_id,
                "person": person,
                "subject": subject,
                "created_after": created_after,
                "created_before": created_before,
            },
            timeout=timeout,
        )
        return answer
