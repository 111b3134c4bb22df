# Written by `node scripts/python-client.ts` from the API description; change that, not this file.
"""Bodies and answers of the fallback service."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from ..._compat import NotRequired
from .common import Chain, ChainDefinition, ChainRequest, Finding, Formats, Warning

TemplateRequestTemplateName = Literal["env", "runbook", "curl"]
ImportChainFormat = Literal["litellm", "portkey", "json", "yaml"]


class Export(TypedDict):
    """A chain in the configuration format of another program."""

    format: Formats
    filename: str
    """The usual name of the file."""
    content_type: str
    """The media type of `content`."""
    config: Any
    """The configuration as an object, or a string if the format is code."""
    content: str
    """The text to save."""
    lossless: bool
    """Whether the target behaves like the chain, with whole answers, and an import gives the
    same chain.
    """
    warnings: list[Warning]
    """What the target cannot express."""


class TemplateRequest(TypedDict):
    """One of `chain_id` and `chain`, and one of `template` and `template_name`."""

    chain_id: NotRequired[str | None]
    chain: NotRequired[ChainRequest | None]
    """A chain, which is not stored; or use `chain_id`."""
    template: NotRequired[str | None]
    template_name: NotRequired[TemplateRequestTemplateName | None]
    variables: NotRequired[dict[str, Any] | None]


class TemplateOutput(TypedDict):
    output: str
    """The output of the template."""
    content_type: str
    """The media type of `output`."""
    warnings: list[Warning]


class ImportRequest(TypedDict):
    """A configuration file of another program, to import as a chain."""

    content: Any
    """The file, as text or as its parsed object."""
    name: NotRequired[str | None]


class Imported(TypedDict):
    chain: Chain
    findings: list[Finding]
    """What was interpreted differently or left out."""


class ImportPreview(TypedDict):
    """What an import would store."""

    chain: ChainDefinition
    findings: list[Finding]
    """What was interpreted differently or left out."""
    warnings: list[Warning]
    """The warnings that the chain would have."""
