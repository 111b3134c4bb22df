# Written by `node scripts/python-client.ts` from the API description; change that, not this file.
"""Bodies and answers of the handoff service."""

from __future__ import annotations

from typing import TypedDict


class HealthAnswer(TypedDict):
    status: str
