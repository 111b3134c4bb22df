# Written by `node scripts/python-client.ts` from the API description; change that, not this file.
"""Bodies and answers of the fallback service."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from ..._compat import NotRequired

Code = Literal[
    "VALIDATION_ERROR",
    "UNAUTHORIZED",
    "FORBIDDEN",
    "NOT_FOUND",
    "METHOD_NOT_ALLOWED",
    "CONFLICT",
    "GONE",
    "PRECONDITION_FAILED",
    "PAYLOAD_TOO_LARGE",
    "UNSUPPORTED_MEDIA_TYPE",
    "UPGRADE_REQUIRED",
    "RATE_LIMITED",
    "SERVER_ERROR",
    "SERVICE_UNAVAILABLE",
    "REHEARSAL_NOT_RUNNING",
]
Name = Literal["second", "minute", "hour", "day", "connections", "wrong_keys"]
Conditions = Literal[
    "rate_limit",
    "timeout",
    "first_token_timeout",
    "server_error",
    "connection_error",
    "interrupted",
    "auth_error",
    "quota_exceeded",
    "model_not_found",
    "context_length",
    "content_filter",
    "unsupported_request",
    "invalid_request",
    "invalid_response",
]
Condition = Literal[
    "rate_limit",
    "timeout",
    "first_token_timeout",
    "server_error",
    "connection_error",
    "interrupted",
    "auth_error",
    "quota_exceeded",
    "model_not_found",
    "context_length",
    "content_filter",
    "unsupported_request",
    "invalid_request",
    "invalid_response",
    "any",
]
Action = Literal["retry", "failover", "fail"]
Status = Literal["running", "completed", "failed", "cancelled"]
Mode = Literal["simulate", "drill", "live", "rehearsal"]
Verdict = Literal["pass", "partial", "lost_as_ruled", "fail", "differs"]
Formats = Literal[
    "litellm",
    "portkey",
    "openrouter",
    "langchain",
    "ai-sdk",
    "bifrost",
    "envoy-ai-gateway",
    "json",
    "yaml",
]


class Failure(TypedDict):
    """The body of every error."""

    detail: str
    """What is wrong, in a sentence."""
    code: Code
    """What is wrong, for a program."""
    field: str | None
    """The dotted path of the invalid field, or the name of the query parameter; null if the
    error is not about a field.
    """
    status_code: int
    """The HTTP status."""
    request_id: NotRequired[str]
    """The id of the request in the log."""
    errors: NotRequired[list[FailureErrors]]
    """All faults, if validation found several."""
    limit: NotRequired[FailureLimit]
    """The limit that is used up, with 429."""


class FailureErrors(TypedDict):
    field: str
    detail: str


class FailureLimit(TypedDict):
    """The limit that is used up, with 429."""

    name: Name
    """The name of the limit."""
    max: int
    """How much it allows."""
    reset_seconds: int
    """Seconds until a request is accepted again, as in `Retry-After`."""


class Warning(TypedDict):
    """A warning."""

    code: str
    """The kind of warning."""
    field: str | None
    """The dotted path of the field it is about; null if there is none."""
    detail: str
    """The warning as a sentence."""
    loss: bool
    """Whether what is exported or imported behaves otherwise than the original with whole
    answers; false for advice, and for what only streams do.
    """


class Cooldown(TypedDict):
    """After how many failures a provider is left out, and for how long, also for later prompts."""

    allowed_fails: int
    """The failures within the window that are allowed; after one more the provider is left out."""
    window_ms: int
    """How long failures are counted, from the first one on."""
    seconds: int
    """How long the provider is left out. A `Retry-After` of the failure replaces it."""
    conditions: list[Conditions] | None


class CooldownRequest(TypedDict):
    """After how many failures a provider is left out, and for how long, also for later prompts."""

    allowed_fails: int
    """The failures within the window that are allowed; after one more the provider is left out."""
    window_ms: int
    """How long failures are counted, from the first one on."""
    seconds: int
    """How long the provider is left out. A `Retry-After` of the failure replaces it."""
    conditions: NotRequired[list[Conditions] | None]


class Provider(TypedDict):
    """One model of a chain, and how it is reached."""

    name: str
    """Display name, unique in the chain."""
    model_id: str
    """Identifier of the model. In `kind/model` with a known kind, the first part is the provider
    kind and is not sent; any other id is sent unchanged.
    """
    priority: int
    """Order in the chain, lowest first. Default: the position in the list."""
    provider: str | None
    """The provider kind, given or derived from `model_id`; null if unknown."""
    api_base: str | None
    api_key_env: str | None
    timeout_ms: int
    """The timeout of an attempt. Default: 30000."""
    first_token_ms: int | None
    idle_ms: int | None
    max_tokens: int | None
    input_cost_per_1m: float | None
    output_cost_per_1m: float | None
    params: dict[str, str | float | bool | dict[str, str]]
    """Parameters of the kind for exports, by their names in LiteLLM: `api_version`,
    `aws_region_name`, `vertex_project`, `organization`, `headers` ... A secret only as a
    reference `os.environ/NAME`.
    """
    metadata: dict[str, Any]
    """Arbitrary data of the caller."""
    cooldown: Cooldown | None
    """The cool-down of this provider, instead of the chain's."""


class ProviderRequest(TypedDict):
    """One model of a chain, and how it is reached."""

    name: str
    """Display name, unique in the chain."""
    model_id: str
    """Identifier of the model. In `kind/model` with a known kind, the first part is the provider
    kind and is not sent; any other id is sent unchanged.
    """
    priority: NotRequired[int | None]
    provider: NotRequired[str | None]
    api_base: NotRequired[str | None]
    api_key_env: NotRequired[str | None]
    timeout_ms: NotRequired[int | None]
    first_token_ms: NotRequired[int | None]
    idle_ms: NotRequired[int | None]
    max_tokens: NotRequired[int | None]
    input_cost_per_1m: NotRequired[float | None]
    output_cost_per_1m: NotRequired[float | None]
    params: NotRequired[dict[str, str | float | bool | dict[str, str]] | None]
    metadata: NotRequired[dict[str, Any] | None]
    cooldown: NotRequired[CooldownRequest | None]
    """The cool-down of this provider, instead of the chain's."""


class Rule(TypedDict):
    """What happens on a condition."""

    condition: Condition
    """The failure; `any` stands for all."""
    action: Action
    """What happens then: retry the provider, fail over to the next one, or return an error."""
    max_retries: int | None
    providers: list[str] | None
    status_codes: list[int] | None
    wait_ms: int | None
    backoff: Literal["constant", "exponential"] | None
    max_wait_ms: int | None
    respect_retry_after: bool | None
    then: Literal["failover", "fail"] | None
    to: list[str] | None


class RuleRequest(TypedDict):
    """What happens on a condition."""

    condition: Condition
    """The failure; `any` stands for all."""
    action: Action
    """What happens then: retry the provider, fail over to the next one, or return an error."""
    max_retries: NotRequired[int | None]
    providers: NotRequired[list[str] | None]
    status_codes: NotRequired[list[int] | None]
    wait_ms: NotRequired[int | None]
    backoff: NotRequired[Literal["constant", "exponential"] | None]
    max_wait_ms: NotRequired[int | None]
    respect_retry_after: NotRequired[bool | None]
    then: NotRequired[Literal["failover", "fail"] | None]
    to: NotRequired[list[str] | None]


class Chain(TypedDict):
    """A stored chain."""

    id: str
    """A UUID."""
    name: str
    """Chain name."""
    description: str | None
    providers: list[Provider]
    """The providers in order."""
    fallback_rules: list[Rule]
    """The rules as given."""
    cooldown: Cooldown | None
    """The cool-down of all providers that have none of their own."""
    metadata: dict[str, Any]
    """Arbitrary data of the caller."""
    version: int
    """Rises by one with each change."""
    created_at: str
    """When it was created."""
    updated_at: str
    """When it last changed."""
    warnings: list[Warning]
    """What the rules actually do, where that may surprise."""


class ChainDefinition(TypedDict):
    """A chain's definition, with all defaults."""

    name: str
    """Chain name."""
    description: str | None
    providers: list[Provider]
    """The providers in order."""
    fallback_rules: list[Rule]
    """The rules as given."""
    cooldown: Cooldown | None
    """The cool-down of all providers that have none of their own."""
    metadata: dict[str, Any]
    """Arbitrary data of the caller."""


class ChainRequest(TypedDict):
    """A chain to create."""

    name: str
    """Chain name; it need not be unique."""
    description: NotRequired[str | None]
    providers: list[ProviderRequest]
    fallback_rules: NotRequired[list[RuleRequest] | None]
    cooldown: NotRequired[CooldownRequest | None]
    """The cool-down of all providers that have none of their own."""
    metadata: NotRequired[dict[str, Any] | None]


class Finding(TypedDict):
    """What an import left out of a file, or what the chain does otherwise than the file."""

    kind: str
    """The kind of finding, for programs."""
    field: str | None
    """The dotted path in the file; null if it is not about one field."""
    line: int | None
    """The line of the field in the file; null if it is unknown."""
    detail: str
    """The finding as a sentence."""
    provider: str | None
    """The provider that it concerns; null for none in particular."""
    condition: Conditions | None
    """The failure of the provider that it concerns; null for none in particular."""
    loss: bool
    """Whether the chain behaves otherwise than the file; false for advice."""
    measured: str | None
    """The program and its versions with which this was measured; null for advice, and for what
    was not.
    """
    stream: NotRequired[bool]
    """Present if it only concerns streamed answers."""
    status_codes: NotRequired[list[int]]
    """Present if it only concerns failures with these statuses."""
