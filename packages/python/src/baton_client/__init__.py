"""Typed clients of Baton: handoff packets between software agents, and fallback chains between model providers."""

from ._sse import ServerSentEvent
from ._transport import VERSION as __version__
from .approvals import ActionDecision
from .errors import (
    ActionFailed,
    ActionRejected,
    ApiError,
    BatonError,
    CallChanged,
    ConflictError,
    ConnectionFailed,
    ContractViolation,
    ForbiddenError,
    GoneError,
    LeaseLost,
    NoAnswer,
    NotFoundError,
    NotModified,
    PayloadTooLargeError,
    PreconditionFailedError,
    QuestionChanged,
    RateLimitedError,
    RequestTimeout,
    ServerError,
    StaleError,
    UnauthorizedError,
    UnavailableError,
    UnreadableAnswer,
    ValidationError,
    WebhookError,
)
from .events import Event
from .fallback.client import AsyncFallback, Fallback
from .handoff.client import AsyncHandoff, Handoff
from .webhooks import verify_webhook
from .worker import AsyncContext, Context

__all__ = [
    "ActionDecision",
    "ActionFailed",
    "ActionRejected",
    "ApiError",
    "AsyncContext",
    "AsyncFallback",
    "AsyncHandoff",
    "BatonError",
    "CallChanged",
    "ConflictError",
    "ConnectionFailed",
    "Context",
    "ContractViolation",
    "Event",
    "Fallback",
    "ForbiddenError",
    "GoneError",
    "Handoff",
    "LeaseLost",
    "NoAnswer",
    "NotFoundError",
    "NotModified",
    "PayloadTooLargeError",
    "PreconditionFailedError",
    "QuestionChanged",
    "RateLimitedError",
    "RequestTimeout",
    "ServerError",
    "ServerSentEvent",
    "StaleError",
    "UnauthorizedError",
    "UnavailableError",
    "UnreadableAnswer",
    "ValidationError",
    "WebhookError",
    "__version__",
    "verify_webhook",
]
