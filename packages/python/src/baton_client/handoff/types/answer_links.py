# Written by `node scripts/python-client.ts` from the API description; change that, not this file.
"""Bodies and answers of the handoff service."""

from __future__ import annotations

from typing import Literal, TypedDict

from ..._compat import NotRequired

AnswerLinkStatus = Literal["open", "answered", "closed", "revoked", "expired"]


class AnswerLink(TypedDict):
    id: str
    """A UUID."""
    packet_id: str
    """A UUID."""
    responder: str | None
    """The person in whose name it answers; null if the person enters a name."""
    sign_in: NotRequired[bool]
    """Its page asks for a sign-in before it shows anything; absent if it does not."""
    status: AnswerLinkStatus
    """`open`: it can be used. `answered`: by this link. `closed`: the question was answered in
    another way. `expired`: also if the question was withdrawn.
    """
    created_at: str
    """When it was made."""
    expires_at: str
    """When it expires."""


class NewAnswerLink(TypedDict):
    id: str
    """A UUID."""
    url: str
    """The address of the page. It is never shown again, and anyone who has it can answer."""
    responder: str | None
    """The person in whose name it answers; null if the person enters a name."""
    sign_in: NotRequired[bool]
    """Its page asks for a sign-in before it shows anything; absent if it does not."""
    expires_at: str
    """When it expires."""


class AnswerLinkRequest(TypedDict):
    responder: NotRequired[str | None]
    """The person in whose name the link answers. If left out, the person enters a name."""
    sign_in: NotRequired[bool | None]
    """Whether the page shows the question only to a person who has signed in: to the
    `responder`, or to one whom the step of a policy asks; without a `responder` to anybody
    who may answer. Needs an identity provider. Default: false.
    """
    expires_in: NotRequired[int | None]
    """How long the link is valid, in seconds. Default: 86400."""
