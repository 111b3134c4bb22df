"""Every operation is called, sync and async: the service knows its path, its parameters and its headers."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from baton_client import ApiError, AsyncFallback, AsyncHandoff, Fallback, Handoff
from conftest import KEY, Service

CLIENTS = [(Handoff, AsyncHandoff), (Fallback, AsyncFallback)]
BY_HAND = {"approve", "close", "events", "requires_approval", "work"}


def operations(client: type) -> Iterator[str]:
    for name, _ in inspect.getmembers(client, inspect.isfunction):
        if not name.startswith(("_", "iter_")) and name not in BY_HAND:
            yield name


def arguments(method: Any) -> tuple[list[str], dict[str, Any]]:
    """Arguments of a call: an unknown id for each parameter of the path, and the parameters named below."""
    parameters = inspect.signature(method).parameters.values()
    path = ["unknown" for parameter in parameters if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]
    named: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            continue
        if parameter.name == "body":
            named["body"] = {}
        elif parameter.name == "limit":
            named["limit"] = 1
        elif parameter.name in ("agent_id", "idempotency_key", "lease_token"):
            named[parameter.name] = f"of-{method.__name__}"
        elif parameter.name.startswith("if_"):
            named[parameter.name] = 1
    return path, named


def is_known(error: ApiError) -> bool:
    """Whether the service refuses the id or the body, and not the path, the method or a parameter."""
    text = error.detail.lower()
    return (
        error.status_code != 405
        and error.status_code < 500
        and all(word not in text for word in ("parameter", "nothing at this path"))
    )


@pytest.mark.parametrize("client", [client for client, _ in CLIENTS])
def test_every_operation_of_the_sync_client_reaches_the_service(
    client: Any, handoff_service: Service, fallback_service: Service
) -> None:
    url = handoff_service.url if client is Handoff else fallback_service.url
    with client(url, KEY if client is Handoff else None) as made:
        for name in operations(client):
            path, named = arguments(getattr(made, name))
            try:
                found = getattr(made, name)(*path, **named)
                if isinstance(found, Iterator):
                    next(found, None)
            except ApiError as error:
                assert is_known(error), f"{name}: {error.status_code} {error.detail}"


@pytest.mark.parametrize("client", [client for _, client in CLIENTS])
def test_every_operation_of_the_async_client_reaches_the_service(
    client: Any, handoff_service: Service, fallback_service: Service
) -> None:
    async def run() -> None:
        url = handoff_service.url if client is AsyncHandoff else fallback_service.url
        async with client(url, KEY if client is AsyncHandoff else None) as made:
            for name in operations(client):
                path, named = arguments(getattr(made, name))
                try:
                    found = getattr(made, name)(*path, **named)
                    if inspect.isasyncgen(found):
                        await anext(found, None)
                    else:
                        await found
                except ApiError as error:
                    assert is_known(error), f"{name}: {error.status_code} {error.detail}"

    asyncio.run(run())


@pytest.mark.parametrize(("sync", "aio"), CLIENTS)
def test_both_clients_have_the_same_methods_and_parameters(sync: type, aio: type) -> None:
    assert list(operations(sync)) == list(operations(aio))
    for name in operations(sync):
        one, other = (inspect.signature(getattr(client, name)).parameters for client in (sync, aio))
        assert one == other
