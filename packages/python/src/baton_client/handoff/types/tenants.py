# Written by `node scripts/python-client.ts` from the API description; change that, not this file.
"""Bodies and answers of the handoff service."""

from __future__ import annotations

from typing import TypedDict

from ..._compat import NotRequired
from .common import Tier


class Tenant(TypedDict):
    id: str
    """A UUID."""
    name: str
    tier: Tier
    """The tier."""
    handoffs_per_day: int | None
    """The maximum number of packets per UTC day; null for the tier's default."""
    requests_per_hour: int | None
    """The maximum number of requests in 60 minutes, of all its keys together; null for the
    tier's default.
    """
    retention_days: int | None
    """Packets are erased this many days after they ended; 0: never; null: as
    `SERVICE_RETENTION_DAYS` says.
    """
    max_api_keys: int
    """The maximum number of API keys it may have; unless set, 1, 5 or 25 by tier."""
    created_at: str
    """When it was created."""
    updated_at: str
    """When it last changed."""
    deleted_at: str | None


class TenantRequest(TypedDict):
    name: str
    """The name of the tenant."""
    tier: NotRequired[Tier | None]
    """The tier. Default: free."""
    handoffs_per_day: NotRequired[int | None]
    """The maximum number of packets per UTC day; null for the tier's default."""
    requests_per_hour: NotRequired[int | None]
    """The maximum number of requests in 60 minutes, of all its keys together; null for the
    tier's default.
    """
    retention_days: NotRequired[int | None]
    """Packets are erased this many days after they ended; 0: never; null: as
    `SERVICE_RETENTION_DAYS` says.
    """
    max_api_keys: NotRequired[int | None]
    """The maximum number of API keys it may have; 1, 5 or 25 by tier if left out."""


class TenantPatch(TypedDict):
    name: NotRequired[str]
    """The name of the tenant."""
    tier: NotRequired[Tier]
    """The tier."""
    handoffs_per_day: NotRequired[int | None]
    """The maximum number of packets per UTC day; null for the tier's default."""
    requests_per_hour: NotRequired[int | None]
    """The maximum number of requests in 60 minutes, of all its keys together; null for the
    tier's default.
    """
    retention_days: NotRequired[int | None]
    """Packets are erased this many days after they ended; 0: never; null: as
    `SERVICE_RETENTION_DAYS` says.
    """
    max_api_keys: NotRequired[int]
    """The maximum number of API keys it may have. Until it is set, it follows the tier."""
