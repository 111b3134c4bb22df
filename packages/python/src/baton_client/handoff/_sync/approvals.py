# Written by `node scripts/python-client.ts` from the API description; change that, not this file.

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, overload

from ..._transport import Connection, entity_tag, new_key, segment
from .. import types


class Approvals(Connection):
    """Operations of the handoff service: approvals."""

    @overload
    def ask_approval(
        self,
        *,
        body: types.ApprovalRequest,
        dry_run: Literal[False] | None = None,
        agent_id: str | None = None,
        timeout: float | None = None,
    ) -> types.Packet: ...
    @overload
    def ask_approval(
        self,
        *,
        body: types.ApprovalRequest,
        dry_run: Literal[True],
        agent_id: str | None = None,
        timeout: float | None = None,
    ) -> types.Trial: ...
    def ask_approval(
        self,
        *,
        body: types.ApprovalRequest,
        dry_run: bool | None = None,
        agent_id: str | None = None,
        timeout: float | None = None,
    ) -> types.Packet | types.Trial:
        """Ask for the approval of an action.

        Makes a packet of the agent, held by it, that asks about a tool call; a policy may
        decide at once. The same agent and `action.call_id` again, at any time, gets the same
        packet, whatever became of it, so that an agent that was started over asks again; with
        another tool or other arguments 409 `CALL_CHANGED`. The packet ends by itself:
        `completed` when the execution ends or the action is not approved, `expired` when
        nothing was begun while the approval was valid.

        Needs a key with the scope `work`.

        Args:
            dry_run: Only check the request: nothing is stored, counted against the quota or sent,
              and the answer is 200 with `ok` and `errors`.
            agent_id: The agent to record as the actor in history and audit log. 1 to 255
              characters.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Packet | types.Trial = self._send(
            "POST",
            "/api/v1/approvals",
            query={
                "dry_run": dry_run,
            },
            body=body,
            headers={
                "X-Agent-Id": agent_id or self._agent_id,
            },
            timeout=timeout,
        )
        return answer

    def start_execution(
        self,
        id: str,
        *,
        body: types.StartExecutionRequest,
        idempotency_key: str | None = None,
        agent_id: str | None = None,
        lease_token: str | None = None,
        timeout: float | None = None,
    ) -> types.StartExecutionAnswer:
        """Start the execution of an approved action.

        Of all calls for an approval one gets 201, and may execute the action with
        `hitl.decision.arguments`; every other gets 409: `ALREADY_EXECUTED` with the
        `execution`, `NOT_APPROVED`, `DIGEST_MISMATCH` or `APPROVAL_EXPIRED`. Send an
        `Idempotency-Key`, one random key per process and execution; repeat it only to retry
        that same request: a key that two processes share gets 201 for both.

        Needs a key with the scope `work`.

        Args:
            id: The id.
            idempotency_key: For 24 hours, a repeated request with the same key returns the first
              answer. 1 to 255 characters.
            agent_id: The agent to record as the actor in history and audit log. 1 to 255
              characters.
            lease_token: The token of the packet's lease, from the answer to its claim. Required for
              a leased packet; must be left out for any other.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.StartExecutionAnswer = self._send(
            "POST",
            f"/api/v1/packets/{segment(id)}/execution",
            body=body,
            headers={
                "Idempotency-Key": idempotency_key or new_key(),
                "X-Agent-Id": agent_id or self._agent_id,
                "X-Lease-Token": lease_token,
            },
            timeout=timeout,
        )
        return answer

    def end_execution(
        self,
        id: str,
        *,
        body: types.EndExecutionRequest,
        question_id: str | None = None,
        agent_id: str | None = None,
        lease_token: str | None = None,
        timeout: float | None = None,
    ) -> types.Execution:
        """Report the end of an execution.

        Of the latest question of the packet, or of the one that is named: name it, so that
        the end is reported also when another question has been asked since. Once, by the key
        that started it, by one of its family, or by an admin key.

        Needs a key with the scope `work`.

        Args:
            id: The id.
            question_id: The id of a question of the packet.
            agent_id: The agent to record as the actor in history and audit log. 1 to 255
              characters.
            lease_token: The token of the packet's lease, from the answer to its claim. Required for
              a leased packet; must be left out for any other.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Execution = self._send(
            "PATCH",
            f"/api/v1/packets/{segment(id)}/execution",
            query={
                "question_id": question_id,
            },
            body=body,
            headers={
                "X-Agent-Id": agent_id or self._agent_id,
                "X-Lease-Token": lease_token,
            },
            timeout=timeout,
        )
        return answer

    def get_execution(
        self,
        id: str,
        *,
        question_id: str | None = None,
        timeout: float | None = None,
    ) -> types.Execution:
        """Get the execution of an approved action.

        Of the latest question of the packet, or of the one that is named. 404 where it was
        not begun.

        Needs a key with the scope `read`.

        Args:
            id: The id.
            question_id: The id of a question of the packet.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Execution = self._send(
            "GET",
            f"/api/v1/packets/{segment(id)}/execution",
            query={
                "question_id": question_id,
            },
            timeout=timeout,
        )
        return answer

    def put_policy(
        self,
        name: str,
        *,
        body: types.PolicyRequest,
        if_match: int | str | None = None,
        if_none_match: int | str | None = None,
        timeout: float | None = None,
    ) -> types.Policy:
        """Publish a policy.

        It judges the actions that are asked about from now on; questions that are open keep
        the version with which they were asked. The first policy by `order`, then by name,
        whose `match` fits decides. Publishing the same document again changes nothing.

        Needs a key with the scope `manage`.

        Args:
            name: The name of the policy.
            if_match: The `ETag` that the caller last saw; 412 if the resource has changed since.
            if_none_match: `*`: only if there is no such policy yet.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Policy = self._send(
            "PUT",
            f"/api/v1/policies/{segment(name)}",
            body=body,
            headers={
                "If-Match": entity_tag(if_match),
                "If-None-Match": entity_tag(if_none_match),
            },
            timeout=timeout,
        )
        return answer

    def get_policy(
        self,
        name: str,
        *,
        if_none_match: int | str | None = None,
        timeout: float | None = None,
    ) -> types.Policy:
        """Get a policy.

        Get a policy.

        Needs a key with the scope `read` or `manage`.

        Args:
            name: The name of the policy.
            if_none_match: The `ETag` that the caller last saw; 304 when the policy has not changed
              since.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Policy = self._send(
            "GET",
            f"/api/v1/policies/{segment(name)}",
            headers={
                "If-None-Match": entity_tag(if_none_match),
            },
            timeout=timeout,
        )
        return answer

    def delete_policy(
        self,
        name: str,
        *,
        if_match: int | str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Remove a policy.

        Remove a policy.

        Needs a key with the scope `manage`.

        Args:
            name: The name of the policy.
            if_match: The `ETag` that the caller last saw; 412 if the resource has changed since.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        self._send(
            "DELETE",
            f"/api/v1/policies/{segment(name)}",
            headers={
                "If-Match": entity_tag(if_match),
            },
            timeout=timeout,
        )

    def list_policies(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        timeout: float | None = None,
    ) -> types.ListPoliciesAnswer:
        """List policies.

        The policies, by name. Pass `next_cursor` as `cursor` for the next page; it is null on
        the last page.

        Needs a key with the scope `read` or `manage`.

        Args:
            limit: The maximum number of items to return; 50 if left out.
            cursor: The `next_cursor` of the previous page.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.ListPoliciesAnswer = self._send(
            "GET",
            "/api/v1/policies",
            query={
                "limit": limit,
                "cursor": cursor,
            },
            timeout=timeout,
        )
        return answer

    def iter_list_policies(
        self,
        *,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> Iterator[types.Policy]:
        """All items of all pages of `list_policies`; `limit` is the size of a page."""
        return self._pages(
            self.list_policies,
            limit=limit,
            timeout=timeout,
        )

    def try_policies(
        self,
        *,
        body: types.TryRequest,
        timeout: float | None = None,
    ) -> types.TryPoliciesAnswer:
        """Try the policies with an action.

        Which policy would decide about the action, and where the ones before it do not fit.
        Nothing is written.

        Needs a key with the scope `read` or `manage`.

        Args:
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.TryPoliciesAnswer = self._send(
            "POST",
            "/api/v1/policies/try",
            body=body,
            timeout=timeout,
        )
        return answer

    def replay_policy(
        self,
        name: str,
        *,
        body: types.ReplayRequest | None = None,
        timeout: float | None = None,
    ) -> types.ReplayPolicyAnswer:
        """Judge past actions by a policy.

        What the policy would have decided about past actions, beside what people did decide:
        the latest that were decided, with the arguments that the agent proposed and the
        packet as it is now. With `policy` in the body that one is judged by, which need not
        be stored. Nothing is written.

        Needs a key with the scope `read` or `manage`.

        Args:
            name: The name of the policy.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.ReplayPolicyAnswer = self._send(
            "POST",
            f"/api/v1/policies/{segment(name)}/replay",
            body={} if body is None else body,
            timeout=timeout,
        )
        return answer

    def put_group(
        self,
        name: str,
        *,
        body: types.GroupRequest,
        if_match: int | str | None = None,
        if_none_match: int | str | None = None,
        timeout: float | None = None,
    ) -> types.Group:
        """Set the members of a group.

        Who is a member counts from now on, also for open questions. Names that begin with
        `SERVICE_OIDC_GROUP_PREFIX`, which is `idp:` by default, are those of an identity
        provider and are refused.

        Needs a key with the scope `manage`.

        Args:
            name: The name of the group.
            if_match: The `ETag` that the caller last saw; 412 if the resource has changed since.
            if_none_match: `*`: only if there is no such group yet.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Group = self._send(
            "PUT",
            f"/api/v1/groups/{segment(name)}",
            body=body,
            headers={
                "If-Match": entity_tag(if_match),
                "If-None-Match": entity_tag(if_none_match),
            },
            timeout=timeout,
        )
        return answer

    def get_group(
        self,
        name: str,
        *,
        timeout: float | None = None,
    ) -> types.Group:
        """Get a group.

        Get a group.

        Needs a key with the scope `read` or `manage`.

        Args:
            name: The name of the group.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Group = self._send(
            "GET",
            f"/api/v1/groups/{segment(name)}",
            timeout=timeout,
        )
        return answer

    def delete_group(
        self,
        name: str,
        *,
        if_match: int | str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Remove a group.

        Steps of policies that name it ask nobody by it any more.

        Needs a key with the scope `manage`.

        Args:
            name: The name of the group.
            if_match: The `ETag` that the caller last saw; 412 if the resource has changed since.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        self._send(
            "DELETE",
            f"/api/v1/groups/{segment(name)}",
            headers={
                "If-Match": entity_tag(if_match),
            },
            timeout=timeout,
        )

    def list_groups(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        timeout: float | None = None,
    ) -> types.ListGroupsAnswer:
        """List groups.

        The groups, by name. Pass `next_cursor` as `cursor` for the next page; it is null on
        the last page.

        Needs a key with the scope `read` or `manage`.

        Args:
            limit: The maximum number of items to return; 50 if left out.
            cursor: The `next_cursor` of the previous page.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.ListGroupsAnswer = self._send(
            "GET",
            "/api/v1/groups",
            query={
                "limit": limit,
                "cursor": cursor,
            },
            timeout=timeout,
        )
        return answer

    def iter_list_groups(
        self,
        *,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> Iterator[types.Group]:
        """All items of all pages of `list_groups`; `limit` is the size of a page."""
        return self._pages(
            self.list_groups,
            limit=limit,
            timeout=timeout,
        )

    def put_delegation(
        self,
        person: str,
        *,
        body: types.DelegationRequest,
        if_match: int | str | None = None,
        if_none_match: int | str | None = None,
        timeout: float | None = None,
    ) -> types.Delegation:
        """Let a person's approvals be given by another one.

        Where a step asks the person, the delegate may approve in that place; the two count
        once. A delegate delegates nothing further. Needs the scope `manage`, or `respond` and
        a key with that `responder`.

        Needs a key with the scope `manage` or `respond`.

        Args:
            person: The name of the person.
            if_match: The `ETag` that the caller last saw; 412 if the resource has changed since.
            if_none_match: `*`: only if the person has no delegate yet.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Delegation = self._send(
            "PUT",
            f"/api/v1/delegations/{segment(person)}",
            body=body,
            headers={
                "If-Match": entity_tag(if_match),
                "If-None-Match": entity_tag(if_none_match),
            },
            timeout=timeout,
        )
        return answer

    def get_delegation(
        self,
        person: str,
        *,
        timeout: float | None = None,
    ) -> types.Delegation:
        """Get a delegation.

        Get a delegation.

        Needs a key with the scope `read` or `respond`.

        Args:
            person: The name of the person.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Delegation = self._send(
            "GET",
            f"/api/v1/delegations/{segment(person)}",
            timeout=timeout,
        )
        return answer

    def delete_delegation(
        self,
        person: str,
        *,
        if_match: int | str | None = None,
        timeout: float | None = None,
    ) -> None:
        """End a delegation.

        Needs the scope `manage`, or `respond` and a key with that `responder`.

        Needs a key with the scope `manage` or `respond`.

        Args:
            person: The name of the person.
            if_match: The `ETag` that the caller last saw; 412 if the resource has changed since.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        self._send(
            "DELETE",
            f"/api/v1/delegations/{segment(person)}",
            headers={
                "If-Match": entity_tag(if_match),
            },
            timeout=timeout,
        )

    def list_delegations(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        timeout: float | None = None,
    ) -> types.ListDelegationsAnswer:
        """List delegations.

        The delegations, by person. Pass `next_cursor` as `cursor` for the next page; it is
        null on the last page.

        Needs a key with the scope `read` or `respond`.

        Args:
            limit: The maximum number of items to return; 50 if left out.
            cursor: The `next_cursor` of the previous page.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.ListDelegationsAnswer = self._send(
            "GET",
            "/api/v1/delegations",
            query={
                "limit": limit,
                "cursor": cursor,
            },
            timeout=timeout,
        )
        return answer

    def iter_list_delegations(
        self,
        *,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> Iterator[types.Delegation]:
        """All items of all pages of `list_delegations`; `limit` is the size of a page."""
        return self._pages(
            self.list_delegations,
            limit=limit,
            timeout=timeout,
        )

    def list_standing_approvals(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        timeout: float | None = None,
    ) -> types.ListStandingApprovalsAnswer:
        """List standing approvals.

        What people have approved for later, the oldest first, also what has expired. Pass
        `next_cursor` as `cursor` for the next page.

        Needs a key with the scope `read` or `respond`.

        Args:
            limit: The maximum number of items to return; 50 if left out.
            cursor: The `next_cursor` of the previous page.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.ListStandingApprovalsAnswer = self._send(
            "GET",
            "/api/v1/standing-approvals",
            query={
                "limit": limit,
                "cursor": cursor,
            },
            timeout=timeout,
        )
        return answer

    def iter_list_standing_approvals(
        self,
        *,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> Iterator[types.StandingApproval]:
        """All items of all pages of `list_standing_approvals`; `limit` is the size of a page."""
        return self._pages(
            self.list_standing_approvals,
            limit=limit,
            timeout=timeout,
        )

    def delete_standing_approval(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> None:
        """Revoke a standing approval.

        It counts no more. Needs the scope `manage`, or `respond` and a key with its person as
        `responder`.

        Needs a key with the scope `manage` or `respond`.

        Args:
            id: The id.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        self._send(
            "DELETE",
            f"/api/v1/standing-approvals/{segment(id)}",
            timeout=timeout,
        )
