"""Requests with time-outs and retries, and streams that resume."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import quote
from weakref import WeakKeyDictionary

import httpx

from ._sse import Parser, ServerSentEvent
from .errors import ApiError, BatonError, ConnectionFailed, NotModified, RequestTimeout, UnreadableAnswer, api_error

VERSION = "1.0.0"
TRANSIENT = (429, 502, 503, 504)
SILENCE_SECONDS = 75.0
"""A stream that is silent for this long counts as broken: the service sends a ping every 30 seconds."""

Self = TypeVar("Self", bound="Connection")
AsyncSelf = TypeVar("AsyncSelf", bound="AsyncConnection")


def new_key() -> str:
    """A new idempotency key."""
    return str(uuid.uuid4())


def segment(value: str) -> str:
    """A value as one segment of a path. An empty id, `.` or `..` would change the path itself."""
    if value in ("", ".", ".."):
        raise ValueError(f"{value!r} is no id.")
    return quote(value, safe="")


def entity_tag(version: int | str | None) -> str | None:
    """The entity tag of a version; a text is one already."""
    return f'"{version}"' if isinstance(version, int) else version


def json_of(body: object) -> bytes:
    """The JSON of a body. Raises TypeError, ValueError or RecursionError for what has none, such as a date or NaN."""
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _key_of(given: str) -> str:
    """The API key without the line break of the file that it was read from."""
    key = given.strip()
    if re.fullmatch(r"[!-~]+", key) is None:
        raise ValueError("The API key must be visible ASCII characters without spaces.")
    return key


def _header(name: str, value: str) -> tuple[bytes, bytes]:
    """A header, as UTF-8. httpx would quote a value that it refuses."""
    if re.search(r"[\x00-\x08\x0a-\x1f\x7f]", value) is not None:
        raise ValueError(f"{name} can't have line breaks or other control characters.")
    return name.encode(), value.encode()


class _Base:
    """What both connections know: where the service is, and how requests and errors look."""

    _root_suffix = ""

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        agent_id: str | None = None,
        *,
        timeout: float = 30.0,
        retries: int = 2,
        max_wait: float = 60.0,
    ) -> None:
        """Makes a client; it opens no connection before the first request.

        Args:
            base_url: where the service is, for example `http://localhost:8080`.
            api_key: the API key; only public operations work without one.
            agent_id: the agent in whose name the client acts; operations send it in `X-Agent-Id`.
            timeout: seconds to wait for an answer; `wait_seconds` of a request is added to it.
            retries: how often a failed request is repeated, if that is safe.
            max_wait: the longest `Retry-After` to wait for, in seconds; with a longer one a request fails at once. A
                stream waits up to about ten minutes, or this long if it is longer.
        """
        self._base_url = base_url.rstrip("/").removesuffix(self._root_suffix)
        self._api_key = None if api_key is None else _key_of(api_key)
        self._agent_id = agent_id
        self._timeout = timeout
        self._retries = retries
        self._max_wait = max_wait
        headers = {"User-Agent": f"baton-client/{VERSION} httpx/{httpx.__version__}"}
        if self._api_key is not None:
            headers["X-API-Key"] = self._api_key
        # A redirect is not followed, so that the key is sent to no other host.
        self._open(base_url=self._base_url, headers=headers, follow_redirects=False)

    def _open(self, **options: Any) -> None:
        """Makes the client of httpx."""
        raise NotImplementedError

    def _request(
        self,
        client: httpx.Client | httpx.AsyncClient,
        method: str,
        path: str,
        query: Mapping[str, Any] | None,
        body: Any,
        headers: Mapping[str, str | None] | None,
        timeout: float | None,
    ) -> httpx.Request:
        body_wait = body.get("wait_seconds") if isinstance(body, Mapping) else None
        waited = float((query or {}).get("wait_seconds") or body_wait or 0)
        sent = [_header(name, value) for name, value in (headers or {}).items() if value is not None]
        if body is not None:
            sent.append(
                _header("Content-Type", "text/plain; charset=utf-8" if isinstance(body, str) else "application/json")
            )
        return client.build_request(
            method,
            path,
            params=_params(query),
            headers=sent,
            timeout=timeout if timeout is not None else self._timeout + waited,
            content=body.encode() if isinstance(body, str) else None if body is None else json_of(body),
        )

    def _pause(self, request: httpx.Request, error: BatonError, attempt: int) -> float | None:
        """Seconds until the request is sent again; None if it is not."""
        safe = request.method in ("GET", "HEAD") or "Idempotency-Key" in request.headers
        if attempt >= self._retries or not _may_repeat(error, safe):
            return None
        return self._wait(error, attempt)

    def _wait(self, error: BatonError, attempt: int) -> float | None:
        asked = error.retry_after if isinstance(error, ApiError) else None
        if asked is not None:
            return asked if asked <= self._max_wait else None
        return float(min(30.0, 0.5 * 2 ** min(attempt, 10)) * random.uniform(0.5, 1.0))

    def _stream_pause(self, parser: Parser, error: BatonError, failures: int) -> float:
        """Seconds until a stream is opened again: as long as the service asks for, within a bound."""
        asked = error.retry_after if isinstance(error, ApiError) else None
        if asked is not None and asked > self._max_wait:
            return min(asked, max(600.0, self._max_wait)) * random.uniform(1.0, 1.25)
        if asked is None and failures == 1:
            return parser.retry
        wait = self._wait(error, failures)
        return parser.retry if wait is None else wait


def _quoted(item: str) -> str:
    """An item of a comma-separated list, in quotation marks if it needs them, as in CSV."""
    return '"' + item.replace('"', '""') + '"' if "," in item or '"' in item or item != item.strip() else item


def _params(query: Mapping[str, Any] | None) -> list[tuple[str, str | int | float | None]]:
    found: list[tuple[str, str | int | float | None]] = []
    for name, value in (query or {}).items():
        if name == "subscribe":
            found += [(name, item) for item in value or ()]
        elif isinstance(value, bool):
            found.append((name, "true" if value else "false"))
        elif isinstance(value, list | tuple):
            found.append((name, ",".join(map(_quoted, value))))
        elif value is not None:
            found.append((name, value))
    return found


def _may_repeat(error: BatonError, safe: bool) -> bool:
    if isinstance(error, ApiError):
        return error.status_code == 429 or (safe and error.status_code in TRANSIENT)
    # No byte of a request without a connection has arrived.
    return safe or isinstance(error.__cause__, httpx.ConnectError | httpx.ConnectTimeout)


def _failure(error: httpx.RequestError, request: httpx.Request) -> BatonError:
    origin = f"{request.url.scheme}://{request.url.netloc.decode()}"
    if isinstance(error, httpx.DecodingError):
        found: BatonError = UnreadableAnswer(f"An answer of {origin} could not be read: {error}")
    elif isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
        found = RequestTimeout(f"{origin} did not answer in time.")
    else:
        found = ConnectionFailed(f"{origin} could not be reached: {error}")
    found.__cause__ = error
    return found


def _result(response: httpx.Response) -> Any:
    if response.status_code == 304:
        raise NotModified("The resource has not changed.")
    if not response.is_success:
        raise api_error(response.status_code, response.headers, response.text)
    if response.text == "":
        return None
    # Only the type itself: JSON Lines, `application/jsonl`, are a text.
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type == "application/json":
        try:
            return response.json()
        except (ValueError, RecursionError) as error:
            raise UnreadableAnswer(f"An answer of {response.url} is no JSON.") from error
    return response.text


def _text_of(response: httpx.Response) -> str:
    """The body; empty if it could not be read."""
    try:
        return response.text
    except httpx.ResponseNotRead:
        return ""


def _next(page: Any, query: dict[str, Any]) -> tuple[list[Any], dict[str, Any] | None]:
    """The items of a page, and the query of the next one."""
    lists = [page] if isinstance(page, list) else [value for value in page.values() if isinstance(value, list)]
    items: list[Any] = lists[0]
    if isinstance(page, list):
        return items, (
            {**query, "offset": query.get("offset", 0) + len(items)} if query.get("limit") and items else None
        )
    if page.get("next_cursor") is not None:
        return items, {**query, "cursor": page["next_cursor"]}
    seen = query.get("offset", 0) + len(items)
    ended = not items or "next_cursor" in page or seen >= page.get("total", 0)
    return items, None if ended else {**query, "offset": seen}


class Connection(_Base):
    """Sends requests; a context manager that closes its connections."""

    def _open(self, **options: Any) -> None:
        self._http = httpx.Client(**options)

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str | None] | None = None,
        timeout: float | None = None,
    ) -> Any:
        request = self._request(self._http, method, path, query, body, headers, timeout)
        attempt = 0
        while True:
            try:
                return _result(self._sent(request))
            except (ApiError, ConnectionFailed, RequestTimeout, UnreadableAnswer) as error:
                pause = self._pause(request, error, attempt)
                if pause is None:
                    raise
            time.sleep(pause)
            attempt += 1

    def _sent(self, request: httpx.Request) -> httpx.Response:
        try:
            return self._http.send(request)
        except httpx.RequestError as error:
            raise _failure(error, request) from error

    def _pages(self, operation: Callable[..., Any], **query: Any) -> Iterator[Any]:
        following: dict[str, Any] | None = query
        while following is not None:
            items, following = _next(operation(**following), following)
            yield from items

    def _stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str | None] | None = None,
        parser: Parser | None = None,
    ) -> Iterator[ServerSentEvent]:
        """The events of one connection."""
        parser = parser or Parser()
        sent = {**(headers or {}), "Accept": "text/event-stream"}
        request = self._request(self._http, method, path, query, body, sent, SILENCE_SECONDS)
        try:
            response = self._http.send(request, stream=True)
            try:
                if not response.is_success:
                    # The status alone says that the stream is refused.
                    with contextlib.suppress(httpx.RequestError):
                        response.read()
                    raise api_error(response.status_code, response.headers, _text_of(response))
                for text in response.iter_text():
                    yield from parser.feed(text)
            finally:
                response.close()
        except httpx.RequestError as error:
            raise _failure(error, request) from error

    def _resumed(self, path: str, query: Mapping[str, Any], last_id: str | None) -> Iterator[ServerSentEvent]:
        """The events of a stream that is opened again after a break, after the last event."""
        parser = Parser(last_id=last_id)
        failures = 0
        while True:
            error: BatonError = ConnectionFailed("The stream ended.")
            try:
                parser = Parser(last_id=parser.last_id, retry=parser.retry)
                for event in self._stream(
                    "GET", path, query=query, headers={"Last-Event-ID": parser.last_id}, parser=parser
                ):
                    failures = 0
                    yield event
            except (ConnectionFailed, RequestTimeout) as broken:
                error = broken
            except ApiError as refused:
                if refused.status_code not in TRANSIENT:
                    raise
                error = refused
            failures += 1
            time.sleep(self._stream_pause(parser, error, failures))


class AsyncConnection(_Base):
    """The same over asyncio. Each event loop has connections of its own: a second `asyncio.run` is another one."""

    def _open(self, **options: Any) -> None:
        self._options = options
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()

    @property
    def _http(self) -> httpx.AsyncClient:
        """The client of httpx for the running loop."""
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            client = self._clients[loop] = httpx.AsyncClient(**self._options)
        return client

    async def close(self) -> None:
        """Closes the connections of the running loop."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    async def __aenter__(self: AsyncSelf) -> AsyncSelf:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str | None] | None = None,
        timeout: float | None = None,
    ) -> Any:
        request = self._request(self._http, method, path, query, body, headers, timeout)
        attempt = 0
        while True:
            try:
                return _result(await self._sent(request))
            except (ApiError, ConnectionFailed, RequestTimeout, UnreadableAnswer) as error:
                pause = self._pause(request, error, attempt)
                if pause is None:
                    raise
            await asyncio.sleep(pause)
            attempt += 1

    async def _sent(self, request: httpx.Request) -> httpx.Response:
        try:
            return await self._http.send(request)
        except httpx.RequestError as error:
            raise _failure(error, request) from error

    async def _pages(self, operation: Callable[..., Awaitable[Any]], **query: Any) -> AsyncIterator[Any]:
        following: dict[str, Any] | None = query
        while following is not None:
            items, following = _next(await operation(**following), following)
            for item in items:
                yield item

    async def _stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str | None] | None = None,
        parser: Parser | None = None,
    ) -> AsyncIterator[ServerSentEvent]:
        parser = parser or Parser()
        sent = {**(headers or {}), "Accept": "text/event-stream"}
        request = self._request(self._http, method, path, query, body, sent, SILENCE_SECONDS)
        try:
            response = await self._http.send(request, stream=True)
            try:
                if not response.is_success:
                    with contextlib.suppress(httpx.RequestError):
                        await response.aread()
                    raise api_error(response.status_code, response.headers, _text_of(response))
                async for text in response.aiter_text():
                    for event in parser.feed(text):
                        yield event
            finally:
                await response.aclose()
        except httpx.RequestError as error:
            raise _failure(error, request) from error

    async def _resumed(
        self, path: str, query: Mapping[str, Any], last_id: str | None
    ) -> AsyncIterator[ServerSentEvent]:
        parser = Parser(last_id=last_id)
        failures = 0
        while True:
            error: BatonError = ConnectionFailed("The stream ended.")
            try:
                parser = Parser(last_id=parser.last_id, retry=parser.retry)
                headers = {"Last-Event-ID": parser.last_id}
                async for event in self._stream("GET", path, query=query, headers=headers, parser=parser):
                    failures = 0
                    yield event
            except (ConnectionFailed, RequestTimeout) as broken:
                error = broken
            except ApiError as refused:
                if refused.status_code not in TRANSIENT:
                    raise
                error = refused
            failures += 1
            await asyncio.sleep(self._stream_pause(parser, error, failures))
