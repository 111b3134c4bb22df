"""The clients of the fallback service."""

from __future__ import annotations

from ._aio import Operations as AsyncOperations
from ._sync import Operations


class Fallback(Operations):
    """The fallback chain service: one method for each operation."""


class AsyncFallback(AsyncOperations):
    """The same over asyncio."""
