# Written by `node scripts/python-client.ts` from the API description; change that, not this file.
"""Bodies and answers of the fallback service."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from ..._compat import NotRequired
from .common import (
    Action,
    Condition,
    Conditions,
    Cooldown,
    CooldownRequest,
    Finding,
    Formats,
    Mode,
    ProviderRequest,
    RuleRequest,
    Status,
    Verdict,
    Warning,
)

StepAction = Literal["retry", "failover", "fail", "serve"]


class ChainPatch(TypedDict):
    """The fields to change: arrays as a whole, null for the default."""

    name: NotRequired[str]
    """Chain name."""
    description: NotRequired[str | None]
    providers: NotRequired[list[ProviderRequest]]
    fallback_rules: NotRequired[list[RuleRequest] | None]
    cooldown: NotRequired[CooldownRequest | None]
    """The cool-down of all providers that have none of their own."""
    metadata: NotRequired[dict[str, Any] | None]


class Decision(TypedDict):
    """What the chain does if a provider fails with a condition."""

    condition: Conditions
    """The failure."""
    action: Action
    """The first action."""
    max_retries: int
    """Extra attempts at this provider."""
    next_provider: str | None
    """The provider that is tried next; null if the prompt fails."""
    source: Literal["rule", "default"]
    """Whether a rule of the chain or a default decides."""
    rule: int | None
    """The rule's index in `fallback_rules`; null for a default."""
    exceptions: list[DecisionExceptions]
    """HTTP statuses of this condition for which another rule decides."""
    findings: list[Finding]
    """The findings of the import about this condition, of this provider or of none in
    particular.
    """


class DecisionExceptions(TypedDict):
    status_code: int
    """The HTTP status with a different decision."""
    action: Action
    """The first action."""
    max_retries: int
    """Extra attempts at this provider."""
    next_provider: str | None
    """The provider that is tried next; null if the prompt fails."""
    source: Literal["rule", "default"]
    """Whether a rule of the chain or a default decides."""
    rule: int | None
    """The rule's index in `fallback_rules`; null for a default."""


class WorstCase(TypedDict):
    """The upper bounds of a prompt, however the providers behave."""

    attempts: int
    """The maximum number of attempts of a prompt."""
    latency_ms: float
    """The longest duration of a prompt, including timeouts and waits."""
    first_token_ms: float
    """The longest time of a streamed prompt until its first content, by `first_token_ms` of the
    providers.
    """


class Step(TypedDict):
    """A step in the path of a prompt."""

    provider: str
    """The provider that is called."""
    attempt: int
    """The number of the attempt at this provider, from 1."""
    condition: Conditions | None
    """How it fails; null if it answers."""
    action: StepAction
    """The next action."""
    wait_ms: float
    """The longest wait before the next step, without Retry-After."""
    source: Literal["rule", "default"] | None
    """Whether a rule or a default decides; null if the provider answers."""
    rule: int | None
    """The rule's index in `fallback_rules`."""


class Routing(TypedDict):
    """The chain's decisions for all failures of all providers."""

    order: list[str]
    """The names of the providers, in order."""
    providers: list[RoutingProviders]
    """The decision for each provider and each condition."""
    worst_case: WorstCase
    warnings: list[Warning]
    question: RoutingQuestion | None
    path: list[Step] | None
    """The steps from the provider in the question on; null without a question."""


class RoutingProviders(TypedDict):
    name: str
    cooldown: Cooldown | None
    """The cool-down that holds for this provider: its own, else the chain's; null without one."""
    decisions: list[Decision]


class RoutingQuestion(TypedDict):
    """The question that `path` answers."""

    provider: str
    """The provider that always fails."""
    condition: Conditions
    """How it fails."""
    status_code: int | None
    """The HTTP status it fails with; null without a response."""
    served_by: str | None
    """The provider that finally answers; null if the prompt fails."""


class ChainCheck(TypedDict):
    """The result of checking a chain."""

    warnings: list[Warning]
    """What the rules really do, where that may surprise."""
    worst_case: WorstCase


class LastTest(TypedDict):
    id: str
    """A UUID."""
    status: Status
    mode: Mode
    verdict: Verdict | None
    prompt_count: int
    """The number of prompts."""
    success_rate: float | None
    chain_version: int
    """The tested version of the chain."""
    started_at: str
    """When the test started."""
    completed_at: str | None


class ChainSummary(TypedDict):
    """A description of a chain in a few sentences, with the underlying facts."""

    text: str
    """The chain in a few sentences."""
    provider_count: int
    """The number of providers."""
    rule_count: int
    """The number of rules."""
    primary: str
    """The provider that is tried first."""
    last_resort: str
    """The provider that is tried last."""
    conditions: ChainSummaryConditions
    worst_case: WorstCase
    last_test: LastTest | None
    lossless_formats: list[Formats]
    """Export formats that are lossless for this chain."""


class ChainSummaryConditions(TypedDict):
    with_rule: list[Condition]
    """Conditions that rules decide for all providers and statuses."""
    by_default: list[Conditions]
    """Conditions that a default decides, at least for some provider or status."""
