# Written by `node scripts/python-client.ts` from the API description; change that, not this file.
"""Bodies and answers of the handoff service."""

from __future__ import annotations

from typing import Literal, TypedDict

from ..._compat import NotRequired
from .common import Scopes, Tier

OwnKeyKind = Literal["key", "session", "token"]


class NewApiKey(TypedDict):
    id: str
    """A UUID."""
    name: str
    tier: Tier
    """The tier."""
    prefix: str
    """The first eight characters of the key."""
    admin: bool
    """Whether it may manage tenants."""
    created_at: str
    """When it was created."""
    expires_at: str | None
    """When a rotated key expires; null for a key that was not rotated."""
    scopes: list[Scopes]
    """What it may do."""
    agents: list[str] | None
    """The ids of the agents that it may act as; null for any."""
    responder: str | None
    """The person in whose name it answers; null for any."""
    sees: Literal["all", "own"]
    """Whether it sees all packets of the tenant, or its own."""
    queues: list[str] | None
    """For a key that sees its own: the target agents whose packets it also sees; else null."""
    key: str
    """The key itself. It is never shown again."""


class OwnKey(TypedDict):
    kind: OwnKeyKind
    """What the request was sent with: a key, the session of a person who signed in, or a token
    of the identity provider.
    """
    id: str | None
    """Null for a session or a token."""
    name: str
    tier: Tier
    """The tier."""
    prefix: str | None
    """The first eight characters of the key; null for a session or a token."""
    admin: bool
    """Whether it may manage tenants."""
    created_at: str | None
    """Null for a session or a token."""
    expires_at: str | None
    """When a rotated key expires; null for a key that was not rotated."""
    scopes: list[Scopes]
    """What it may do."""
    agents: list[str] | None
    """The ids of the agents that it may act as; null for any."""
    responder: str | None
    """The person in whose name it answers; null for any."""
    sees: Literal["all", "own"]
    """Whether it sees all packets of the tenant, or its own."""
    queues: list[str] | None
    """For a key that sees its own: the target agents whose packets it also sees; else null."""
    tenant: OwnKeyTenant
    """The tenant of the key."""


class OwnKeyTenant(TypedDict):
    """The tenant of the key."""

    id: str
    """A UUID."""
    name: str
    tier: Tier
    """The tier."""


class KeyRequest(TypedDict):
    name: str
    """What the key is for."""
    tier: NotRequired[Tier | None]
    """At most the tenant's tier, which is the default."""
    admin: NotRequired[bool | None]
    """Whether to create an admin key; needs an admin key."""
    tenant_id: NotRequired[str | None]
    """The tenant to create the key for; needs an admin key."""
    scopes: NotRequired[list[Scopes] | None]
    """What the key may do, at most what the creating key may do. By default everything that the
    creating key may do, except act as an admin key.
    """
    agents: NotRequired[list[str] | None]
    """The agents that the key may act as: source agent, claimant and `X-Agent-Id`. Any if left
    out.
    """
    responder: NotRequired[str | None]
    """The person in whose name the key answers: `responded_by` must be this. Any if left out."""
    sees: NotRequired[Literal["all", "own"] | None]
    """With `own` the key sees only packets whose source, target or holder is one of its
    `agents`, or whose target is one of its `queues`; any other packet is unknown to it. Such
    a key needs `agents`, and can't have the scope `manage`. `all` if left out.
    """
    queues: NotRequired[list[str] | None]
    """For a key that sees its own: the target agents whose packets it also sees and claims. Its
    `agents` if left out.
    """


class RotateRequest(TypedDict):
    overlap_seconds: NotRequired[int | None]
    """How long the old key remains valid; an hour if left out."""
