# Written by `node scripts/python-client.ts` from the API description; change that, not this file.

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Literal, overload

from ..._sse import ServerSentEvent
from ..._transport import AsyncConnection, segment
from .. import types


class Tests(AsyncConnection):
    """Operations of the fallback service: tests."""

    @overload
    async def run_test(
        self,
        id: str,
        *,
        body: types.TestRequest | None = None,
        dry_run: Literal[False] | None = None,
        prefer: str | None = None,
        timeout: float | None = None,
    ) -> types.TestResult: ...
    @overload
    async def run_test(
        self,
        id: str,
        *,
        body: types.TestRequest | None = None,
        dry_run: Literal[True],
        prefer: str | None = None,
        timeout: float | None = None,
    ) -> types.RunTestAnswer: ...
    async def run_test(
        self,
        id: str,
        *,
        body: types.TestRequest | None = None,
        dry_run: bool | None = None,
        prefer: str | None = None,
        timeout: float | None = None,
    ) -> types.RunTestAnswer | types.TestResult:
        """Run a test.

        Answers with the finished result. With `Prefer: respond-async` it answers 202 at once,
        and the result or its events can be read while the test runs. The test uses a snapshot
        of the chain. `drill`, `live` and `rehearsal` need a service started with
        `--allow-live`.

        Args:
            id: The id.
            dry_run: Only validate the test, and answer 200 with the maximum number of calls that it
              can make.
            prefer: `respond-async` for an answer before the test has ended (RFC 7240).
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.RunTestAnswer | types.TestResult = await self._send(
            "POST",
            f"/chains/{segment(id)}/test",
            query={
                "dry_run": dry_run,
            },
            body={} if body is None else body,
            headers={
                "Prefer": prefer,
            },
            timeout=timeout,
        )
        return answer

    async def get_test_result(
        self,
        id: str,
        *,
        limit: int | None = None,
        offset: int | None = None,
        prompts: bool | None = None,
        timeout: float | None = None,
    ) -> types.TestResult | list[types.TestResult]:
        """Get test results.

        For a test's id its result; for a chain's id an array of the chain's results, newest
        first. A page over 16 MiB ends early, and `Link` has the next page. Results outlive
        changes and deletion of the chain.

        Args:
            id: The id.
            limit: The maximum number of results for a chain's id.
            offset: How many results to skip.
            prompts: Whether to include the prompts; otherwise `results` is empty.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.TestResult | list[types.TestResult] = await self._send(
            "GET",
            f"/test-results/{segment(id)}",
            query={
                "limit": limit,
                "offset": offset,
                "prompts": prompts,
            },
            timeout=timeout,
        )
        return answer

    async def cancel_test(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> types.TestResult:
        """Cancel a running test.

        The result stays as `cancelled`, with the finished prompts. A test that has ended
        gives 409.

        Args:
            id: The id.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.TestResult = await self._send(
            "DELETE",
            f"/test-results/{segment(id)}",
            timeout=timeout,
        )
        return answer

    def test_events(
        self,
        id: str,
    ) -> AsyncIterator[ServerSentEvent]:
        """Follow a running test.

        Server-sent events, each with the `id`, `status`, `progress`, `success_count`,
        `failure_count`, `fallback_count` and `verdict` of the result: `progress` while the
        test runs, then `end`, after which the connection closes. A test that has ended gives
        `end` at once.

        Args:
            id: The id.
        """
        return self._stream(
            "GET",
            f"/test-results/{segment(id)}/events",
        )

    async def get_rehearsal_token(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> types.RehearsalToken:
        """Get the token of a chain's fake providers.

        A configuration for a rehearsal leads to `{base}/{provider}`. The token stays the same
        until a new one is made, so the configuration can be kept.

        Args:
            id: The id.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.RehearsalToken = await self._send(
            "GET",
            f"/chains/{segment(id)}/rehearsal-token",
            timeout=timeout,
        )
        return answer

    async def renew_rehearsal_token(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> types.RehearsalToken:
        """Make a new token of a chain's fake providers.

        Configurations with the previous token stop working.

        Args:
            id: The id.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.RehearsalToken = await self._send(
            "POST",
            f"/chains/{segment(id)}/rehearsal-token",
            timeout=timeout,
        )
        return answer
