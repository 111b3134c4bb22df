# Written by `node scripts/python-client.ts` from the API description; change that, not this file.

from __future__ import annotations

from typing import Any, Literal, overload

from ..._transport import AsyncConnection, segment
from .. import types


class Exports(AsyncConnection):
    """Operations of the fallback service: exports."""

    @overload
    async def export_chain(
        self,
        id: str,
        *,
        format: types.Formats | None = None,
        raw: Literal[False] | None = None,
        prefer: Literal["failover", "retry"] | None = None,
        rehearsal: bool | None = None,
        keep_state: bool | None = None,
        rehearsal_base: str | None = None,
        timeout: float | None = None,
    ) -> types.Export: ...
    @overload
    async def export_chain(
        self,
        id: str,
        *,
        format: types.Formats | None = None,
        raw: Literal[True],
        prefer: Literal["failover", "retry"] | None = None,
        rehearsal: bool | None = None,
        keep_state: bool | None = None,
        rehearsal_base: str | None = None,
        timeout: float | None = None,
    ) -> str: ...
    async def export_chain(
        self,
        id: str,
        *,
        format: types.Formats | None = None,
        raw: bool | None = None,
        prefer: Literal["failover", "retry"] | None = None,
        rehearsal: bool | None = None,
        keep_state: bool | None = None,
        rehearsal_base: str | None = None,
        timeout: float | None = None,
    ) -> types.Export | str:
        """Export chain configuration.

        Exports contain no keys, only the names of environment variables. `warnings` lists
        what the target cannot express; `raw=true` returns only the text, as a download.

        Args:
            id: The id.
            format: The target format.
            raw: Return only the text, as a download.
            prefer: For targets with a single number of retries, if the chain mixes retries and
              failovers.
            rehearsal: Lead every address to the chain's fake providers, with the literal key
              `rehearsal`. Only for the formats litellm, portkey, langchain, ai-sdk, json.
            keep_state: With `rehearsal`: whether the gateway keeps the cool-downs of the chain, as
              outages in time need it. Default: false, so that scenes do not disturb one another.
            rehearsal_base: With `rehearsal`: the address at which the gateway reaches this service.
              Default: SERVICE_PUBLIC_URL, or the address of this request.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Export | str = await self._send(
            "POST",
            f"/chains/{segment(id)}/export",
            query={
                "format": format,
                "raw": raw,
                "prefer": prefer,
                "rehearsal": rehearsal,
                "keep_state": keep_state,
                "rehearsal_base": rehearsal_base,
            },
            timeout=timeout,
        )
        return answer

    async def export_template(
        self,
        *,
        body: types.TemplateRequest,
        timeout: float | None = None,
    ) -> types.TemplateOutput:
        """Export with a custom template.

        Renders a Liquid template in a sandbox: no code, no files, unknown names are errors,
        size and time are limited.

        Args:
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.TemplateOutput = await self._send(
            "POST",
            "/export-template",
            body=body,
            timeout=timeout,
        )
        return answer

    @overload
    async def import_chain(
        self,
        *,
        body: types.ImportRequest | dict[str, Any] | str,
        format: types.ImportChainFormat | None = None,
        dry_run: Literal[False] | None = None,
        group: str | None = None,
        timeout: float | None = None,
    ) -> types.Imported: ...
    @overload
    async def import_chain(
        self,
        *,
        body: types.ImportRequest | dict[str, Any] | str,
        format: types.ImportChainFormat | None = None,
        dry_run: Literal[True],
        group: str | None = None,
        timeout: float | None = None,
    ) -> types.ImportPreview: ...
    async def import_chain(
        self,
        *,
        body: types.ImportRequest | dict[str, Any] | str,
        format: types.ImportChainFormat | None = None,
        dry_run: bool | None = None,
        group: str | None = None,
        timeout: float | None = None,
    ) -> types.ImportPreview | types.Imported:
        """Import a chain from a file.

        The file as `content` or as the body itself. `findings` lists what was left out or
        interpreted differently.

        Args:
            format: The format of the file.
            dry_run: Answer with the chain and the findings, and store nothing.
            group: For LiteLLM: the model group at which the chain starts. Default: the only group
              that has fallbacks and is nobody's fallback.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.ImportPreview | types.Imported = await self._send(
            "POST",
            "/import",
            query={
                "format": format,
                "dry_run": dry_run,
                "group": group,
            },
            body=body,
            timeout=timeout,
        )
        return answer
