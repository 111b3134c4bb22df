# Written by `node scripts/python-client.ts` from the API description; change that, not this file.

from __future__ import annotations

from collections.abc import AsyncIterator

from ..._transport import AsyncConnection, segment
from .. import types


class People(AsyncConnection):
    """Operations of the handoff service: people."""

    async def list_people(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        timeout: float | None = None,
    ) -> types.ListPeopleAnswer:
        """List the people who answer.

        Everybody who signed in, whom a key or a channel names as its `responder`, or who was
        suspended, by name.

        Needs a key with the scope `manage`.

        Args:
            limit: The maximum number of items to return.
            offset: How many items to skip.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.ListPeopleAnswer = await self._send(
            "GET",
            "/api/v1/people",
            query={
                "limit": limit,
                "offset": offset,
            },
            timeout=timeout,
        )
        return answer

    def iter_list_people(
        self,
        *,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> AsyncIterator[types.Person]:
        """All items of all pages of `list_people`; `limit` is the size of a page."""
        return self._pages(
            self.list_people,
            limit=limit,
            timeout=timeout,
        )

    async def suspend_person(
        self,
        name: str,
        *,
        timeout: float | None = None,
    ) -> types.Person:
        """Suspend a person.

        The person answers nothing from now on: the sessions and the open answer links end,
        keys with this `responder` are refused (401), and channels of this `responder` send
        links no more. The name need not be known yet. Suspending again changes nothing.

        Needs a key with the scope `manage`.

        Args:
            name: The name of the person. Case does not matter.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Person = await self._send(
            "POST",
            f"/api/v1/people/{segment(name)}/suspend",
            timeout=timeout,
        )
        return answer

    async def resume_person(
        self,
        name: str,
        *,
        timeout: float | None = None,
    ) -> types.Person:
        """Let a suspended person answer again.

        Keys and channels of the person work again; sessions and links that ended stay ended.

        Needs a key with the scope `manage`.

        Args:
            name: The name of the person. Case does not matter.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Person = await self._send(
            "POST",
            f"/api/v1/people/{segment(name)}/resume",
            timeout=timeout,
        )
        return answer

    async def release_person(
        self,
        name: str,
        *,
        timeout: float | None = None,
    ) -> types.Person:
        """Release a name for somebody else.

        The next person who signs in under the name gets it. Until then a name belongs to the
        person of the identity provider who signed in under it first, and another one is
        refused. The sessions, the open answer links and the standing approvals of the former
        person end, with the delegations from and to the name. 409 while keys or channels have
        the `responder`, or channels or schedules are of that person: they would act for the
        next one.

        Needs a key with the scope `manage`.

        Args:
            name: The name of the person. Case does not matter.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Person = await self._send(
            "POST",
            f"/api/v1/people/{segment(name)}/release",
            timeout=timeout,
        )
        return answer
