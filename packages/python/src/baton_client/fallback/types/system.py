# Written by `node scripts/python-client.ts` from the API description; change that, not this file.
"""Bodies and answers of the fallback service."""

from __future__ import annotations

from typing import TypedDict


class AccessInfo(TypedDict):
    """The caller's label and rights."""

    label: str | None
    """The label of the API key; null for a key without one, and if no keys are configured."""
    may_write: bool
    """Whether the caller may change things; otherwise it may only read and export."""
    live_allowed: bool
    """Whether tests may send requests: to the real providers (`drill`, `live`), or to a gateway
    (`rehearsal`).
    """
    version: str
    """The version of the service."""


class HealthAnswer(TypedDict):
    status: str
