# Written by `node scripts/python-client.ts` from the API description; change that, not this file.

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Literal, overload

from ..._transport import AsyncConnection, entity_tag, new_key, segment
from .. import types


class Packets(AsyncConnection):
    """Operations of the handoff service: packets."""

    @overload
    async def create_packet(
        self,
        *,
        body: types.CreateRequest,
        dry_run: Literal[False] | None = None,
        idempotency_key: str | None = None,
        agent_id: str | None = None,
        timeout: float | None = None,
    ) -> types.Packet: ...
    @overload
    async def create_packet(
        self,
        *,
        body: types.CreateRequest,
        dry_run: Literal[True],
        idempotency_key: str | None = None,
        agent_id: str | None = None,
        timeout: float | None = None,
    ) -> types.Trial: ...
    async def create_packet(
        self,
        *,
        body: types.CreateRequest,
        dry_run: bool | None = None,
        idempotency_key: str | None = None,
        agent_id: str | None = None,
        timeout: float | None = None,
    ) -> types.Trial | types.Packet:
        """Create a packet.

        Hands a unit of work to another agent. The packet starts as `created`, with the
        `version` of the packet schema. It counts towards the tenant's daily quota (UTC).
        After a 503, or when no answer arrives, repeat the request with the same
        `Idempotency-Key`.

        Needs a key with the scope `work`.

        Args:
            dry_run: Only check the request: nothing is stored, counted against the quota or sent,
              and the answer is 200 with `ok` and `errors`.
            idempotency_key: For 24 hours, a repeated request with the same key returns the first
              answer. 1 to 255 characters.
            agent_id: The agent to record as the actor in history and audit log. 1 to 255
              characters.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Trial | types.Packet = await self._send(
            "POST",
            "/api/v1/packets",
            query={
                "dry_run": dry_run,
            },
            body=body,
            headers={
                "Idempotency-Key": idempotency_key or new_key(),
                "X-Agent-Id": agent_id or self._agent_id,
            },
            timeout=timeout,
        )
        return answer

    async def list_packets(
        self,
        *,
        status: str | Sequence[str] | None = None,
        source_agent: str | None = None,
        target_agent: str | None = None,
        tags: str | Sequence[str] | None = None,
        priority: types.Priority | None = None,
        subject: str | None = None,
        hitl_required: bool | None = None,
        created_after: str | None = None,
        created_before: str | None = None,
        claimed_by: str | None = None,
        parent_packet_id: str | None = None,
        updated_after: str | None = None,
        updated_before: str | None = None,
        scheduled: bool | None = None,
        overdue: bool | None = None,
        due_before: str | None = None,
        order: types.Order | None = None,
        limit: int | None = None,
        offset: int | None = None,
        cursor: str | None = None,
        view: Literal["summary", "full"] | None = None,
        timeout: float | None = None,
    ) -> types.PacketList:
        """List packets.

        Newest first, oldest first with `order=asc`, or by `due_at` with `order=due`. Filters
        are combined with AND; `total` is exact. Pass `next_cursor` as `cursor` for the next
        page; it is null on the last page, is only valid with the same filters and order, and
        must not be combined with `offset`. Packets created between requests shift pages by
        `offset`, but not pages by cursor.

        Needs a key with the scope `read`.

        Args:
            status: Comma-separated statuses; a packet must have one of them.
            source_agent: The source agent's id.
            target_agent: The target agent's id.
            tags: Comma-separated tags; a packet must have all of them. A tag with a comma stands in
              quotation marks, as in CSV.
            priority: The priority.
            subject: The id of a person whose data the packet holds.
            hitl_required: Whether the packet has a checkpoint that a person must answer.
            created_after: Created at or after this moment. A date or date-time of ISO 8601.
            created_before: Created at or before this moment. A date or date-time of ISO 8601.
            claimed_by: The id of the agent that holds the packet, or held it last.
            parent_packet_id: A UUID.
            updated_after: Last changed at or after this moment. A date or date-time of ISO 8601.
            updated_before: Last changed at or before this moment. A date or date-time of ISO 8601.
            scheduled: Whether the packet is `created` and its `not_before` is still to come.
            overdue: Whether the packet is open and was so at its `due_at`.
            due_before: With a `due_at` at or before this moment. A date or date-time of ISO 8601.
            order: `asc`: oldest first. `due`: the nearest `due_at` first, packets without one at
              the end, oldest first.
            limit: The maximum number of items to return.
            offset: How many items to skip.
            cursor: The `next_cursor` of the previous page; must not be combined with `offset`.
            view: `full`: whole packets instead of summaries.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.PacketList = await self._send(
            "GET",
            "/api/v1/packets",
            query={
                "status": status,
                "source_agent": source_agent,
                "target_agent": target_agent,
                "tags": tags,
                "priority": priority,
                "subject": subject,
                "hitl_required": hitl_required,
                "created_after": created_after,
                "created_before": created_before,
                "claimed_by": claimed_by,
                "parent_packet_id": parent_packet_id,
                "updated_after": updated_after,
                "updated_before": updated_before,
                "scheduled": scheduled,
                "overdue": overdue,
                "due_before": due_before,
                "order": order,
                "limit": limit,
                "offset": offset,
                "cursor": cursor,
                "view": view,
            },
            timeout=timeout,
        )
        return answer

    def iter_list_packets(
        self,
        *,
        status: str | Sequence[str] | None = None,
        source_agent: str | None = None,
        target_agent: str | None = None,
        tags: str | Sequence[str] | None = None,
        priority: types.Priority | None = None,
        subject: str | None = None,
        hitl_required: bool | None = None,
        created_after: str | None = None,
        created_before: str | None = None,
        claimed_by: str | None = None,
        parent_packet_id: str | None = None,
        updated_after: str | None = None,
        updated_before: str | None = None,
        scheduled: bool | None = None,
        overdue: bool | None = None,
        due_before: str | None = None,
        order: types.Order | None = None,
        limit: int | None = None,
        view: Literal["summary", "full"] | None = None,
        timeout: float | None = None,
    ) -> AsyncIterator[types.PacketSummary | types.Packet]:
        """All items of all pages of `list_packets`; `limit` is the size of a page."""
        return self._pages(
            self.list_packets,
            status=status,
            source_agent=source_agent,
            target_agent=target_agent,
            tags=tags,
            priority=priority,
            subject=subject,
            hitl_required=hitl_required,
            created_after=created_after,
            created_before=created_before,
            claimed_by=claimed_by,
            parent_packet_id=parent_packet_id,
            updated_after=updated_after,
            updated_before=updated_before,
            scheduled=scheduled,
            overdue=overdue,
            due_before=due_before,
            order=order,
            limit=limit,
            view=view,
            timeout=timeout,
        )

    async def list_awaiting(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        cursor: str | None = None,
        view: Literal["summary", "full"] | None = None,
        timeout: float | None = None,
    ) -> types.ListAwaitingAnswer:
        """List packets that await a person.

        Every packet in `awaiting_human`, newest first. `unnotified` says that no channel
        notifies anybody of them.

        Needs a key with the scope `read`.

        Args:
            limit: The maximum number of items to return.
            offset: How many items to skip.
            cursor: The `next_cursor` of the previous page; must not be combined with `offset`.
            view: `full`: whole packets instead of summaries.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.ListAwaitingAnswer = await self._send(
            "GET",
            "/api/v1/packets/awaiting",
            query={
                "limit": limit,
                "offset": offset,
                "cursor": cursor,
                "view": view,
            },
            timeout=timeout,
        )
        return answer

    def iter_list_awaiting(
        self,
        *,
        limit: int | None = None,
        view: Literal["summary", "full"] | None = None,
        timeout: float | None = None,
    ) -> AsyncIterator[types.PacketSummary | types.Packet]:
        """All items of all pages of `list_awaiting`; `limit` is the size of a page."""
        return self._pages(
            self.list_awaiting,
            limit=limit,
            view=view,
            timeout=timeout,
        )

    async def search_packets(
        self,
        *,
        q: str | None = None,
        status: str | Sequence[str] | None = None,
        target_agent: str | None = None,
        tags: str | Sequence[str] | None = None,
        priority: types.Priority | None = None,
        subject: str | None = None,
        created_after: str | None = None,
        created_before: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
        cursor: str | None = None,
        timeout: float | None = None,
    ) -> types.SearchList:
        """Search packets.

        Full-text search over summary, conversation, artifacts, decisions, actions and the
        question and reason of a checkpoint. A new packet is found as soon as it is created.
        Up to 5,000 matches are ranked; if there are more, the newest come first. In that case
        a search with a filter or a phrase of common words may return a short or empty page
        before the end: continue with `next_cursor`.

        Needs a key with the scope `read`.

        Args:
            q: Words and "quoted phrases", all of which must occur. `*` directly after a word of two
              or more characters makes it a prefix. Only the first sixteen words count.
            status: Comma-separated statuses; a packet must have one of them.
            target_agent: The target agent's id.
            tags: Comma-separated tags; a packet must have all of them. A tag with a comma stands in
              quotation marks, as in CSV.
            priority: The priority.
            subject: The id of a person whose data the packet holds.
            created_after: Created at or after this moment. A date or date-time of ISO 8601.
            created_before: Created at or before this moment. A date or date-time of ISO 8601.
            limit: The maximum number of items to return.
            offset: How many items to skip.
            cursor: The `next_cursor` of the previous page; must not be combined with `offset`.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.SearchList = await self._send(
            "GET",
            "/api/v1/packets/search",
            query={
                "q": q,
                "status": status,
                "target_agent": target_agent,
                "tags": tags,
                "priority": priority,
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

    def iter_search_packets(
        self,
        *,
        q: str | None = None,
        status: str | Sequence[str] | None = None,
        target_agent: str | None = None,
        tags: str | Sequence[str] | None = None,
        priority: types.Priority | None = None,
        subject: str | None = None,
        created_after: str | None = None,
        created_before: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> AsyncIterator[types.PacketHit]:
        """All items of all pages of `search_packets`; `limit` is the size of a page."""
        return self._pages(
            self.search_packets,
            q=q,
            status=status,
            target_agent=target_agent,
            tags=tags,
            priority=priority,
            subject=subject,
            created_after=created_after,
            created_before=created_before,
            limit=limit,
            timeout=timeout,
        )

    async def get_packet(
        self,
        id: str,
        *,
        wait_seconds: int | None = None,
        until: str | Sequence[str] | None = None,
        until_revision: int | None = None,
        if_none_match: int | str | None = None,
        timeout: float | None = None,
    ) -> types.Packet:
        """Get a packet.

        The whole packet. With `If-None-Match`, an unchanged packet is answered with 304 and
        no body. With `wait_seconds` the answer comes as soon as the packet is as `until` or
        `until_revision` says. If that time passes or the service stops first, the answer has
        the packet as it is then. A waiting request counts towards the connection quota.

        Needs a key with the scope `read`.

        Args:
            id: The id.
            wait_seconds: How long to wait until the packet is as `until` or `until_revision` says.
            until: Comma-separated statuses; the wait ends when the packet has one of them.
            until_revision: The wait ends when the packet has this revision or a later one.
            if_none_match: The `ETag` that the caller last saw; 304 when the packet has not changed
              since.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Packet = await self._send(
            "GET",
            f"/api/v1/packets/{segment(id)}",
            query={
                "wait_seconds": wait_seconds,
                "until": until,
                "until_revision": until_revision,
            },
            headers={
                "If-None-Match": entity_tag(if_none_match),
            },
            timeout=timeout,
        )
        return answer

    async def patch_packet(
        self,
        id: str,
        *,
        body: types.PatchRequest,
        if_match: int | str | None = None,
        idempotency_key: str | None = None,
        agent_id: str | None = None,
        lease_token: str | None = None,
        timeout: float | None = None,
    ) -> types.Packet:
        """Update a packet.

        Moves the packet to another status and merges content into it. Fields that are left
        out stay unchanged: `decisions`, `dependencies` and the lists of `actions` are merged
        by `id`, `context` and `metadata` at their top level; an action listed in `completed`
        or `failed` is removed from `pending`. A transition that is not allowed gets 400, and
        `detail` lists the allowed ones. `awaiting_human` needs `hitl.question`; a packet with
        `hitl.required` can only be completed once the question is answered.

        Needs a key with the scope `work`.

        Args:
            id: The id.
            if_match: The `ETag` that the caller last saw; 412 if the resource has changed since.
            idempotency_key: For 24 hours, a repeated request with the same key returns the first
              answer. 1 to 255 characters.
            agent_id: The agent to record as the actor in history and audit log. 1 to 255
              characters.
            lease_token: The token of the packet's lease, from the answer to its claim. Required for
              a leased packet; must be left out for any other.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Packet = await self._send(
            "PATCH",
            f"/api/v1/packets/{segment(id)}",
            body=body,
            headers={
                "If-Match": entity_tag(if_match),
                "Idempotency-Key": idempotency_key or new_key(),
                "X-Agent-Id": agent_id or self._agent_id,
                "X-Lease-Token": lease_token,
            },
            timeout=timeout,
        )
        return answer

    async def delete_packet(
        self,
        id: str,
        *,
        hard: bool | None = None,
        if_match: int | str | None = None,
        agent_id: str | None = None,
        lease_token: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Delete a packet.

        The packet becomes `expired` and stays readable; deleting an expired packet gets 409.
        With `hard=true` an admin key removes the packet and its content permanently. A leased
        packet needs its lease token, unless the key is an admin key.

        Needs a key with the scope `work`.

        Args:
            id: The id.
            hard: Remove the packet and its content permanently; needs an admin key.
            if_match: The `ETag` that the caller last saw; 412 if the resource has changed since.
            agent_id: The agent to record as the actor in history and audit log. 1 to 255
              characters.
            lease_token: The token of the packet's lease, from the answer to its claim. Required for
              a leased packet; must be left out for any other.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        await self._send(
            "DELETE",
            f"/api/v1/packets/{segment(id)}",
            query={
                "hard": hard,
            },
            headers={
                "If-Match": entity_tag(if_match),
                "X-Agent-Id": agent_id or self._agent_id,
                "X-Lease-Token": lease_token,
            },
            timeout=timeout,
        )

    async def claim_packet(
        self,
        id: str,
        *,
        body: types.ClaimRequest,
        if_match: int | str | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> types.Packet:
        """Claim a packet.

        Assigns a `created` packet to an agent. When several agents try, exactly one succeeds;
        the others get 409 with the holder in `claimed_by`. The target agent is a
        recommendation: any agent of the tenant may claim. With `lease_seconds` the claim
        expires unless it is renewed, and the answer contains the lease's `token`.

        Needs a key with the scope `work`.

        Args:
            id: The id.
            if_match: The `ETag` that the caller last saw; 412 if the resource has changed since.
            idempotency_key: For 24 hours, a repeated request with the same key returns the first
              answer. 1 to 255 characters.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Packet = await self._send(
            "POST",
            f"/api/v1/packets/{segment(id)}/claim",
            body=body,
            headers={
                "If-Match": entity_tag(if_match),
                "Idempotency-Key": idempotency_key or new_key(),
            },
            timeout=timeout,
        )
        return answer

    async def respond_packet(
        self,
        id: str,
        *,
        body: types.RespondRequest,
        if_match: int | str | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> types.Packet:
        """Answer a packet's question.

        Records the answer of a person to a packet in `awaiting_human`. The packet returns to
        `claimed`, held by its previous holder, or by its target agent if it had none. 409
        when the packet awaits no answer, or `STALE` when it has changed since the person saw
        it, as `digest` tells; 410 after `timeout_seconds`.

        Needs a key with the scope `respond`.

        Args:
            id: The id.
            if_match: The `ETag` that the caller last saw; 412 if the resource has changed since.
            idempotency_key: For 24 hours, a repeated request with the same key returns the first
              answer. 1 to 255 characters.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Packet = await self._send(
            "POST",
            f"/api/v1/packets/{segment(id)}/respond",
            body=body,
            headers={
                "If-Match": entity_tag(if_match),
                "Idempotency-Key": idempotency_key or new_key(),
            },
            timeout=timeout,
        )
        return answer

    async def chain_packet(
        self,
        id: str,
        *,
        body: types.ChainRequest,
        idempotency_key: str | None = None,
        agent_id: str | None = None,
        timeout: float | None = None,
    ) -> types.Packet:
        """Continue a packet with a new one.

        Creates a packet whose parent is the packet in the path, in any status. The child
        contains only what is sent.

        Needs a key with the scope `work`.

        Args:
            id: The id.
            idempotency_key: For 24 hours, a repeated request with the same key returns the first
              answer. 1 to 255 characters.
            agent_id: The agent to record as the actor in history and audit log. 1 to 255
              characters.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Packet = await self._send(
            "POST",
            f"/api/v1/packets/{segment(id)}/chain",
            body=body,
            headers={
                "Idempotency-Key": idempotency_key or new_key(),
                "X-Agent-Id": agent_id or self._agent_id,
            },
            timeout=timeout,
        )
        return answer

    async def packet_history(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> types.PacketHistoryAnswer:
        """Read a packet's history.

        Who did what to the packet, and when: the part of the audit log that concerns it.

        Needs a key with the scope `read`.

        Args:
            id: The id.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.PacketHistoryAnswer = await self._send(
            "GET",
            f"/api/v1/packets/{segment(id)}/history",
            timeout=timeout,
        )
        return answer

    async def ask_question(
        self,
        id: str,
        *,
        body: types.AskRequest,
        if_match: int | str | None = None,
        idempotency_key: str | None = None,
        agent_id: str | None = None,
        lease_token: str | None = None,
        timeout: float | None = None,
    ) -> types.Packet:
        """Ask a question.

        Asks a person, and moves the packet to `awaiting_human`. The body has the fields of
        `hitl`; nothing of an earlier question remains, except that `exclude_source` stays
        until a key that may lift it does. With the `key` and the fields of a question that is
        open or answered, that question is asked: 200, and nothing changes. 409
        `QUESTION_OPEN` while another question is open, `KEY_CHANGED` if the key belongs to a
        question with other fields.

        Needs a key with the scope `work`.

        Args:
            id: The id.
            if_match: The `ETag` that the caller last saw; 412 if the resource has changed since.
            idempotency_key: For 24 hours, a repeated request with the same key returns the first
              answer. 1 to 255 characters.
            agent_id: The agent to record as the actor in history and audit log. 1 to 255
              characters.
            lease_token: The token of the packet's lease, from the answer to its claim. Required for
              a leased packet; must be left out for any other.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Packet = await self._send(
            "POST",
            f"/api/v1/packets/{segment(id)}/questions",
            body=body,
            headers={
                "If-Match": entity_tag(if_match),
                "Idempotency-Key": idempotency_key or new_key(),
                "X-Agent-Id": agent_id or self._agent_id,
                "X-Lease-Token": lease_token,
            },
            timeout=timeout,
        )
        return answer

    async def list_questions(
        self,
        id: str,
        *,
        limit: int | None = None,
        key: str | None = None,
        cursor: str | None = None,
        timeout: float | None = None,
    ) -> types.ListQuestionsAnswer:
        """List the questions of a packet.

        Every question that was asked, oldest first, with what became of it. Pass
        `next_cursor` as `cursor` for the next page; it is null on the last page.

        Needs a key with the scope `read`.

        Args:
            id: The id.
            limit: The maximum number of items to return; 50 if left out.
            key: Only questions with this `key`; the last of them is the one that has it.
            cursor: The `next_cursor` of the previous page.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.ListQuestionsAnswer = await self._send(
            "GET",
            f"/api/v1/packets/{segment(id)}/questions",
            query={
                "limit": limit,
                "key": key,
                "cursor": cursor,
            },
            timeout=timeout,
        )
        return answer

    def iter_list_questions(
        self,
        id: str,
        *,
        limit: int | None = None,
        key: str | None = None,
        timeout: float | None = None,
    ) -> AsyncIterator[types.QuestionView]:
        """All items of all pages of `list_questions`; `limit` is the size of a page."""
        return self._pages(
            self.list_questions,
            id=id,
            limit=limit,
            key=key,
            timeout=timeout,
        )

    async def get_question(
        self,
        id: str,
        question_id: str,
        *,
        timeout: float | None = None,
    ) -> types.QuestionView:
        """Get a question of a packet.

        A question that was asked, with its answer and what the person was shown.

        Needs a key with the scope `read`.

        Args:
            id: The id.
            question_id: The id of the question.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.QuestionView = await self._send(
            "GET",
            f"/api/v1/packets/{segment(id)}/questions/{segment(question_id)}",
            timeout=timeout,
        )
        return answer

    @overload
    async def packet_brief(
        self,
        id: str,
        *,
        max_chars: int | None = None,
        depth: int | None = None,
        format: Literal["json"] | None = None,
        timeout: float | None = None,
    ) -> types.Brief: ...
    @overload
    async def packet_brief(
        self,
        id: str,
        *,
        max_chars: int | None = None,
        depth: int | None = None,
        format: Literal["markdown"],
        timeout: float | None = None,
    ) -> str: ...
    async def packet_brief(
        self,
        id: str,
        *,
        max_chars: int | None = None,
        depth: int | None = None,
        format: Literal["json", "markdown"] | None = None,
        timeout: float | None = None,
    ) -> types.Brief | str:
        """Get a brief of a packet.

        What the next agent needs to know, small enough for a prompt: the packet's summary,
        its open question or the answer, pending actions, decisions, unsatisfied dependencies
        and failed actions; the same of its ancestors; then the keys of artifacts and the last
        messages. Texts are cut at a word; `omitted` says what is missing and where it is. The
        same packets give the same brief.

        Needs a key with the scope `read`.

        Args:
            id: The id.
            max_chars: The maximum number of characters (Unicode code points) of text.
            depth: How many ancestors to include at most.
            format: `markdown`: one text, `text/markdown`.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Brief | str = await self._send(
            "GET",
            f"/api/v1/packets/{segment(id)}/brief",
            query={
                "max_chars": max_chars,
                "depth": depth,
                "format": format,
            },
            timeout=timeout,
        )
        return answer

    async def batch_create(
        self,
        *,
        body: types.BatchCreateRequest,
        idempotency_key: str | None = None,
        agent_id: str | None = None,
        timeout: float | None = None,
    ) -> types.BatchCreateAnswer:
        """Create many packets.

        Each packet is created or refused independently; refused packets are listed in
        `errors` by index. At most 100 in one request, unless the service is configured
        otherwise.

        Needs a key with the scope `work`.

        Args:
            idempotency_key: For 24 hours, a repeated request with the same key returns the first
              answer. 1 to 255 characters.
            agent_id: The agent to record as the actor in history and audit log. 1 to 255
              characters.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.BatchCreateAnswer = await self._send(
            "POST",
            "/api/v1/packets/batch",
            body=body,
            headers={
                "Idempotency-Key": idempotency_key or new_key(),
                "X-Agent-Id": agent_id or self._agent_id,
            },
            timeout=timeout,
        )
        return answer

    async def batch_claim(
        self,
        *,
        body: types.BatchClaimRequest,
        timeout: float | None = None,
    ) -> types.BatchClaimAnswer:
        """Claim many packets.

        Claims each packet independently; packets that are not free are listed in `errors`
        with their holders. At most 100 in one request, unless the service is configured
        otherwise.

        Needs a key with the scope `work`.

        Args:
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.BatchClaimAnswer = await self._send(
            "POST",
            "/api/v1/packets/batch/claim",
            body=body,
            timeout=timeout,
        )
        return answer

    async def batch_complete(
        self,
        *,
        body: types.BatchCompleteRequest,
        agent_id: str | None = None,
        timeout: float | None = None,
    ) -> types.BatchCompleteAnswer:
        """Complete many packets.

        Completes each packet independently; packets that can't be completed are listed in
        `errors`. At most 100 in one request, unless the service is configured otherwise.

        Needs a key with the scope `work`.

        Args:
            agent_id: The agent to record as the actor in history and audit log. 1 to 255
              characters.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.BatchCompleteAnswer = await self._send(
            "POST",
            "/api/v1/packets/batch/complete",
            body=body,
            headers={
                "X-Agent-Id": agent_id or self._agent_id,
            },
            timeout=timeout,
        )
        return answer

    async def claim_next(
        self,
        *,
        body: types.ClaimNextRequest,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> types.Packet | None:
        """Claim the next packet.

        Claims a `created` packet for the agent: the highest priority first, then the oldest.
        With `wait_seconds` the request waits until one is available; waiting requests are
        served in order of arrival and count towards the tenant's connections. A request whose
        connection has closed is never given a packet.

        Needs a key with the scope `work`.

        Args:
            idempotency_key: For 24 hours, a repeated request with the same key returns the first
              answer. 1 to 255 characters.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Packet | None = await self._send(
            "POST",
            "/api/v1/packets/claim-next",
            body=body,
            headers={
                "Idempotency-Key": idempotency_key or new_key(),
            },
            timeout=timeout,
        )
        return answer

    async def withdraw_question(
        self,
        id: str,
        *,
        agent_id: str | None = None,
        if_match: int | str | None = None,
        timeout: float | None = None,
    ) -> types.Packet:
        """Withdraw a question.

        Withdraws the open question of a packet, which goes back to its holder as `claimed`,
        or to `created` if nobody holds it, without a question. Needs no lease token; with
        `If-Match` it withdraws only the question that the caller has seen.

        Needs a key with the scope `work`.

        Args:
            id: The id.
            agent_id: The agent to record as the actor in history and audit log. 1 to 255
              characters.
            if_match: The `ETag` that the caller last saw; 412 if the resource has changed since.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Packet = await self._send(
            "DELETE",
            f"/api/v1/packets/{segment(id)}/question",
            headers={
                "X-Agent-Id": agent_id or self._agent_id,
                "If-Match": entity_tag(if_match),
            },
            timeout=timeout,
        )
        return answer

    async def release_packet(
        self,
        id: str,
        *,
        agent_id: str | None = None,
        lease_token: str | None = None,
        if_match: int | str | None = None,
        timeout: float | None = None,
    ) -> types.Packet:
        """Release a packet.

        Returns a `claimed` or `in_progress` packet to `created`, so that others can claim it.
        Only its holder, named in `X-Agent-Id`, or an admin key may release a packet; a leased
        packet needs its lease token.

        Needs a key with the scope `work`.

        Args:
            id: The id.
            agent_id: The agent to record as the actor in history and audit log. 1 to 255
              characters.
            lease_token: The token of the packet's lease, from the answer to its claim. Required for
              a leased packet; must be left out for any other.
            if_match: The `ETag` that the caller last saw; 412 if the resource has changed since.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Packet = await self._send(
            "POST",
            f"/api/v1/packets/{segment(id)}/release",
            headers={
                "X-Agent-Id": agent_id or self._agent_id,
                "X-Lease-Token": lease_token,
                "If-Match": entity_tag(if_match),
            },
            timeout=timeout,
        )
        return answer

    async def renew_lease(
        self,
        id: str,
        *,
        body: types.RenewLeaseRequest | None = None,
        lease_token: str | None = None,
        timeout: float | None = None,
    ) -> types.RenewLeaseAnswer:
        """Renew a lease.

        Restarts the lease from now. The packet's revision and history do not change.

        Needs a key with the scope `work`.

        Args:
            id: The id.
            lease_token: The token of the packet's lease, from the answer to its claim. Required for
              a leased packet; must be left out for any other.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.RenewLeaseAnswer = await self._send(
            "POST",
            f"/api/v1/packets/{segment(id)}/lease",
            body={} if body is None else body,
            headers={
                "X-Lease-Token": lease_token,
            },
            timeout=timeout,
        )
        return answer

    async def end_lease(
        self,
        id: str,
        *,
        agent_id: str | None = None,
        lease_token: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """End a lease.

        Ends the lease and returns the packet to `created`, so that others can claim it.

        Needs a key with the scope `work`.

        Args:
            id: The id.
            agent_id: The agent to record as the actor in history and audit log. 1 to 255
              characters.
            lease_token: The token of the packet's lease, from the answer to its claim. Required for
              a leased packet; must be left out for any other.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        await self._send(
            "DELETE",
            f"/api/v1/packets/{segment(id)}/lease",
            headers={
                "X-Agent-Id": agent_id or self._agent_id,
                "X-Lease-Token": lease_token,
            },
            timeout=timeout,
        )
