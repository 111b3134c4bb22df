# Written by `node scripts/python-client.ts` from the API description; change that, not this file.
"""Bodies and answers of the handoff service."""

from __future__ import annotations

from typing import Literal, TypedDict

from ..._compat import NotRequired
from .common import DeliveryStatus, Error

ChannelEvents = Literal["asked", "reminded", "answered", "overdue"]


class Channel(TypedDict):
    id: str
    """A UUID."""
    kind: Literal["email", "slack"]
    """`email` or `slack`."""
    target: str
    """The mail address; of a Slack URL, which is a secret, the origin and the last four
    characters.
    """
    name: str | None
    """What it is called."""
    events: list[ChannelEvents]
    """The events it sends: `asked` for a new question, `reminded` for its reminder, `answered`
    for its answer, `overdue` for a packet that is open at its `due_at`.
    """
    responder: str | None
    """The person whose questions it gets (`hitl.responder`, and steps of policies that ask the
    person), and in whose name its answer links answer. A group (`group:finance`) gets the
    steps that ask it, without answer links. Null: all questions; the person enters a name.
    """
    sign_in: NotRequired[bool]
    """The pages of its links ask for a sign-in; absent if they do not."""
    links: bool
    """Whether its messages have answer links: they do if the key that set its target or
    responder may answer, or if it has a responder, for whom a key with the scope `manage`
    makes it act. The links end when that key is revoked, and when the responder leaves.
    """
    active: bool
    """Whether messages are sent to it."""
    disabled_reason: Literal["gone", "failing"] | None
    """Why the service disabled it; null when it did not."""
    created_at: str
    """When it was created."""
    warnings: NotRequired[list[str]]
    """What it cannot do, and where its links lead if `SERVICE_PUBLIC_URL` is not set, one
    sentence each; otherwise absent.
    """


class ChannelRequest(TypedDict):
    kind: Literal["email", "slack"]
    """`email` or `slack`."""
    target: str
    """A mail address, or the https URL of one of Slack's incoming webhooks."""
    name: NotRequired[str | None]
    """What it is called."""
    events: NotRequired[list[ChannelEvents] | None]
    """The events it sends: `asked` for a new question, `reminded` for its reminder, `answered`
    for its answer, `overdue` for a packet that is open at its `due_at`. Default:
    asked,reminded.
    """
    responder: NotRequired[str | None]
    """The person whose questions it gets (`hitl.responder`, and steps of policies that ask the
    person), and in whose name its answer links answer. A group (`group:finance`) gets the
    steps that ask it, without answer links. If left out: all questions.
    """
    sign_in: NotRequired[bool | None]
    """Whether the pages of its links ask for a sign-in. Needs an identity provider."""


class ChannelPatch(TypedDict):
    target: NotRequired[str]
    """A mail address, or the https URL of one of Slack's incoming webhooks."""
    name: NotRequired[str | None]
    events: NotRequired[list[ChannelEvents]]
    """The events it sends: `asked` for a new question, `reminded` for its reminder, `answered`
    for its answer, `overdue` for a packet that is open at its `due_at`.
    """
    responder: NotRequired[str | None]
    sign_in: NotRequired[bool]
    """Whether the pages of its links ask for a sign-in. Needs an identity provider."""
    active: NotRequired[bool]
    """Whether messages are sent to it."""


class ChannelDelivery(TypedDict):
    id: str
    """A UUID."""
    channel_id: str
    """A UUID."""
    event_type: str
    """The event that it sends: `asked`, `reminded`, `answered` or `test`."""
    packet_id: str | None
    """The packet of the event; null for a test delivery."""
    status: DeliveryStatus
    """The status of the delivery."""
    attempts: int
    """How many attempts were made."""
    last_error: Error | None
    """Why the last attempt failed."""
    last_status_code: int | None
    """The receiver's last HTTP status; null when it sent none."""
    next_retry_at: str | None
    delivered_at: str | None
    created_at: str
    """When the event happened."""
    updated_at: str
    """When the delivery last changed."""
