# Written by `node scripts/python-client.ts` from the API description; change that, not this file.
"""Bodies and answers of the handoff service."""

from __future__ import annotations

from typing import Any, TypedDict

from ..._compat import NotRequired


class McpRequest(TypedDict):
    """A message of JSON-RPC 2.0."""

    jsonrpc: NotRequired[str]
    id: NotRequired[Any]
    method: NotRequired[str]
    params: NotRequired[Any]
