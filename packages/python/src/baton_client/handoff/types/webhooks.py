# Written by `node scripts/python-client.ts` from the API description; change that, not this file.
"""Bodies and answers of the handoff service."""

from __future__ import annotations

from typing import Literal, TypedDict

from ..._compat import NotRequired
from .common import DeliveryStatus, Error

Events = Literal[
    "packet.created",
    "packet.claimed",
    "packet.in_progress",
    "packet.awaiting_human",
    "packet.completed",
    "packet.failed",
    "packet.expired",
    "hitl.response_ready",
    "packet.overdue",
    "audit.head",
]


class Webhook(TypedDict):
    id: str
    """A UUID."""
    url: str
    """Where deliveries go."""
    events: list[Events]
    """The event types it is subscribed to."""
    active: bool
    """Whether events are sent to it."""
    disabled_reason: Literal["gone", "failing"] | None
    """Why the service disabled it; null when it did not."""
    created_at: str
    """When it was registered."""


class WebhookRequest(TypedDict):
    url: str
    """An https URL with a public address, without credentials or a fragment."""
    events: NotRequired[list[Events] | None]
    """The event types to subscribe to; if left out, all but `packet.overdue`."""
    secret: str
    """Signs every delivery. It is never shown. Its UTF-8 bytes are the key of
    `X-SERVICE-Signature`. They are also the key of the signature of Standard Webhooks, unless
    the secret is `whsec_` followed by that key, 24 to 64 bytes, in base64.
    """


class WebhookPatch(TypedDict):
    url: NotRequired[str]
    """An https URL with a public address, without credentials or a fragment."""
    events: NotRequired[list[Events]]
    """The event types to subscribe to."""
    active: NotRequired[bool]
    """Whether events are sent to it."""
    secret: NotRequired[str]
    """The new secret. For a day, deliveries carry a signature by the old secret as well."""


class Delivery(TypedDict):
    id: str
    """A UUID."""
    webhook_id: str
    """A UUID."""
    packet_id: str | None
    """The packet of the event; null for a test delivery."""
    event_type: str
    """A webhook event type, or `ping`."""
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


class DeliveryDetail(TypedDict):
    id: str
    """A UUID."""
    webhook_id: str
    """A UUID."""
    packet_id: str | None
    """The packet of the event; null for a test delivery."""
    event_type: str
    """A webhook event type, or `ping`."""
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
    event_id: str
    """The id of the event, which every attempt sends as `webhook-id`."""
    body: str | None
    """The exact bytes that every attempt signs and sends; null for a push notification, which is
    made when it is sent.
    """


class ReplayedDelivery(TypedDict):
    id: str
    """A UUID."""
    webhook_id: str
    """A UUID."""
    packet_id: str | None
    """The packet of the event; null for a test delivery."""
    event_type: str
    """A webhook event type, or `ping`."""
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
    delivery_id: str
    """A UUID."""
    replayed: bool
    """Always true."""


class RetryRequest(TypedDict):
    webhook_id: NotRequired[str | None]
    """Only deliveries to this webhook."""
    force: NotRequired[bool | None]
    """Whether to include deliveries that are not yet due. Default: false."""
    since: NotRequired[str | None]
    """Only events at or after this moment. A date or date-time of ISO 8601."""
    until: NotRequired[str | None]
    """Only events at or before this moment. A date or date-time of ISO 8601."""


class Retried(TypedDict):
    retried: int
    """How many deliveries are retried."""
    skipped: int
    """How many were skipped because their webhook is inactive."""
    remaining: int
    """How many more are due, beyond the 1,000 of one call."""
