"""Verification of webhooks."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any

from .errors import WebhookError


def verify_webhook(
    secret: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    tolerance: float = 300.0,
    now: float | None = None,
) -> dict[str, Any]:
    """The event of a genuine webhook: `{type, packet_id, data, timestamp}`.

    The signature of Standard Webhooks must be made with the secret, or with what `whsec_<base64>` encodes, and
    `webhook-timestamp` be at most `tolerance` seconds away. `X-SERVICE-Signature`, made with the newest secret alone,
    must hold as well; only while two secrets overlap, which `webhook-signature` shows by a second signature, the older
    secret verifies by that header alone.

    Args:
        secret: the secret of the webhook.
        headers: the headers of the request, in any case.
        body: the raw bytes of the body.
        tolerance: how far the time of the webhook may be from `now`, in seconds.
        now: the time in seconds since 1970; by default the system's.

    Raises:
        WebhookError: if a signature does not hold, or the webhook is too old.
    """
    found = {name.lower(): value for name, value in headers.items()}
    stamp = found.get("webhook-timestamp", "")
    # `int` refuses thousands of digits by an error of its own.
    if not stamp.isascii() or not stamp.isdigit() or len(stamp) > 20:
        raise WebhookError("The header webhook-timestamp is missing or is no number.")
    if abs((time.time() if now is None else now) - int(stamp)) > tolerance:
        raise WebhookError("The webhook is too old, or the clocks differ.")
    key = secret.encode()
    signed = _bytes(f"{found.get('webhook-id', '')}.{stamp}.") + body
    standard = "v1," + base64.b64encode(hmac.new(_standard_key(secret), signed, hashlib.sha256).digest()).decode()
    given = found.get("webhook-signature", "").split()
    if not any(_equal(standard, one) for one in given):
        raise WebhookError("webhook-signature does not sign this body with the secret.")
    plain = "sha256=" + hmac.new(key, body, hashlib.sha256).hexdigest()
    if len(given) < 2 and not _equal(plain, found.get("x-service-signature", "")):
        raise WebhookError("X-SERVICE-Signature does not sign this body with the secret.")
    try:
        event: dict[str, Any] = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise WebhookError("The body is no JSON.") from error
    return event


def _standard_key(secret: str) -> bytes:
    """The key of Standard Webhooks: what `whsec_<base64>` encodes, and the bytes of any other secret."""
    text = secret.removeprefix("whsec_").rstrip("=")
    try:
        decoded = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        decoded = b""
    return decoded if secret.startswith("whsec_") and decoded else secret.encode()


def _equal(one: str, other: str) -> bool:
    return hmac.compare_digest(_bytes(one), _bytes(other))


def _bytes(header: str) -> bytes:
    """The bytes of a header. Some servers decode those that are not UTF-8 as surrogates."""
    return header.encode(errors="surrogateescape")
