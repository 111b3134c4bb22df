# Written by `node scripts/python-client.ts` from the API description; change that, not this file.
"""Bodies and answers of the handoff service."""

from __future__ import annotations

from typing import Any, TypedDict

from ..._compat import NotRequired


class A2aRequest(TypedDict):
    """A request of JSON-RPC 2.0."""

    jsonrpc: NotRequired[Any]
    id: NotRequired[Any]
    method: NotRequired[Any]
    params: NotRequired[Any]


class A2aSendMessageRequest(TypedDict):
    """The request of `SendMessage`."""

    message: NotRequired[Any]
    """As A2A defines it."""


class A2aCreateTaskPushNotificationConfigRequest(TypedDict):
    """The request of `CreateTaskPushNotificationConfig`."""

    id: NotRequired[Any]
    """As A2A defines it."""
    url: NotRequired[Any]
    """As A2A defines it."""
    token: NotRequired[Any]
    """As A2A defines it."""
