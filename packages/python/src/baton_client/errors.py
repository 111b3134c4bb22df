"""What the clients raise. All errors are `BatonError`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .approvals import ActionDecision
    from .handoff import types


class BatonError(Exception):
    """The base of all errors of this package."""


class ConnectionFailed(BatonError):
    """The service could not be reached, or the connection broke before the answer was complete."""


class RequestTimeout(BatonError):
    """No answer arrived in time. Whether the service carried out the request is unknown."""


class UnreadableAnswer(BatonError):
    """An answer is not what the service sends: no JSON, or badly compressed. Often a proxy sent it."""


class WebhookError(BatonError):
    """A webhook has no genuine signature, or is too old."""


class NotModified(BatonError):
    """The resource still has the version that `if_none_match` names."""


class ApiError(BatonError):
    """The service refused the request: the answer has an error status."""

    def __init__(self, status_code: int, headers: Mapping[str, str], text: str) -> None:
        self.status_code = status_code
        self.headers = headers
        self.body: dict[str, Any] = _object(text)
        """The whole body; empty if it is no JSON object."""
        self.code: str | None = _text(self.body.get("code"))
        """The service's error code; None if the answer is not the service's, but for example a proxy's."""
        self.detail: str = _text(self.body.get("detail")) or f"The service answered {status_code}."
        self.field: str | None = _text(self.body.get("field"))
        """The dotted path of the invalid field; None if the error is not about a field."""
        errors = self.body.get("errors")
        self.errors: list[dict[str, Any]] = errors if isinstance(errors, list) else []
        """All faults, if the service found several."""
        self.request_id: str | None = _text(self.body.get("request_id")) or headers.get("x-request-id")
        """The id of the request in the service's log."""
        super().__init__(self.detail)

    @property
    def retry_after(self) -> float | None:
        """Seconds until a request is accepted again, from `Retry-After`."""
        try:
            return max(0.0, float(self.headers.get("retry-after", "")))
        except ValueError:
            return None


class ValidationError(ApiError):
    """400: the request does not have the form of the operation, or the status does not allow it."""


class ContractViolation(ValidationError):
    """400 `CONTRACT_VIOLATION`: the packet lacks what its target agent requires; `errors` lists the faults."""

    @property
    def contract(self) -> dict[str, Any] | None:
        """The agent, the version and the description of the contract."""
        return self.body.get("contract")


class UnauthorizedError(ApiError):
    """401: the key is missing, unknown or revoked."""


class ForbiddenError(ApiError):
    """403: the key may not do this."""


class NotFoundError(ApiError):
    """404: the tenant has no resource with this id."""


class ConflictError(ApiError):
    """409: the state of the resource does not allow this."""

    @property
    def claimed_by(self) -> dict[str, Any] | None:
        """The agent that holds the packet, if another one does."""
        return self.body.get("claimed_by")


class LeaseLost(ConflictError):
    """409 `LEASE_LOST`: another agent may have the packet, and nothing was written."""


class StaleError(ConflictError):
    """409 `STALE`: the question has changed since it was shown; `body["hitl"]` has the current one."""


class QuestionChanged(ConflictError):
    """409 `KEY_CHANGED`: the key belongs to another question of the packet, which may be answered already."""

    @property
    def question(self) -> dict[str, Any] | None:
        """The question that has the key, as it was asked."""
        return self.body.get("question")

    @property
    def answer(self) -> dict[str, Any] | None:
        """Its answer; None if it is still open."""
        return self.body.get("answer")


class CallChanged(ConflictError):
    """409 `CALL_CHANGED`: the agent asked about the call with another tool or other arguments."""

    @property
    def packet_id(self) -> str:
        """The packet that the call was asked about in."""
        return str(self.body.get("packet_id"))


class ActionRejected(BatonError):
    """A person or a policy rejected the action; its text is what they said."""

    def __init__(self, message: str, decision: ActionDecision) -> None:
        self.decision = decision
        super().__init__(message)


class ActionFailed(BatonError):
    """The tool was called for this call before, and raised an error then."""

    def __init__(self, message: str, execution: types.Execution) -> None:
        self.execution = execution
        super().__init__(message)


class NoAnswer(BatonError):
    """Nobody answered the question in time, or another agent changed it. It is withdrawn if it was still open."""


class GoneError(ApiError):
    """410: the time for an answer has passed."""


class PreconditionFailedError(ApiError):
    """412: `if_match` names another version."""


class PayloadTooLargeError(ApiError):
    """413: the body is larger than the tenant's tier allows."""


class RateLimitedError(ApiError):
    """429: a limit is used up; `retry_after` says for how long."""

    @property
    def limit(self) -> dict[str, Any] | None:
        """The name of the limit, how much it allows, and when it is reset."""
        return self.body.get("limit")


class ServerError(ApiError):
    """500 or more: the service failed; its log has the cause under `request_id`."""


class UnavailableError(ServerError):
    """502, 503 or 504: the service or its database is unavailable for now."""


_by_code: dict[str | None, type[ApiError]] = {
    "CALL_CHANGED": CallChanged,
    "CONTRACT_VIOLATION": ContractViolation,
    "KEY_CHANGED": QuestionChanged,
    "LEASE_LOST": LeaseLost,
    "STALE": StaleError,
}
_by_status: dict[int, type[ApiError]] = {
    400: ValidationError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    412: PreconditionFailedError,
    413: PayloadTooLargeError,
    429: RateLimitedError,
    502: UnavailableError,
    503: UnavailableError,
    504: UnavailableError,
}


def api_error(status_code: int, headers: Mapping[str, str], text: str) -> ApiError:
    """The error of an answer, by its code and status."""
    otherwise = ServerError if status_code >= 500 else ApiError
    kind = _by_code.get(_text(_object(text).get("code"))) or _by_status.get(status_code, otherwise)
    return kind(status_code, headers, text)


def _text(value: object) -> str | None:
    """A text; None for what is none, as a proxy may send it."""
    return value if isinstance(value, str) else None


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
