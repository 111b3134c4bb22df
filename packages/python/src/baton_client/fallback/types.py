# Written by `node scripts/python-client.ts` from the API description; change that, not this file.
"""The bodies and answers of the fallback service. Times are texts of ISO 8601."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from .._compat import NotRequired

Code = Literal[
    "VALIDATION_ERROR",
    "CONTRACT_VIOLATION",
    "UNAUTHORIZED",
    "FORBIDDEN",
    "NOT_FOUND",
    "METHOD_NOT_ALLOWED",
    "CONFLICT",
    "LEASE_LOST",
    "LOOP_GUARD",
    "QUESTION_OPEN",
    "ANSWERED",
    "KEY_CHANGED",
    "STALE",
    "GONE",
    "PRECONDITION_FAILED",
    "PAYLOAD_TOO_LARGE",
    "UNSUPPORTED_MEDIA_TYPE",
    "UPGRADE_REQUIRED",
    "RATE_LIMITED",
    "SERVER_ERROR",
    "REHEARSAL_NOT_RUNNING",
    "SERVICE_UNAVAILABLE",
]
Name = Literal["second", "minute", "hour", "day", "connections", "wrong_keys"]
Condition = Literal[
    "rate_limit",
    "timeout",
    "server_error",
    "connection_error",
    "auth_error",
    "quota_exceeded",
    "context_length",
    "content_filter",
    "invalid_request",
    "invalid_response",
    "any",
]
Action = Literal["retry", "failover", "fail"]
DecisionCondition = Literal[
    "rate_limit",
    "timeout",
    "server_error",
    "connection_error",
    "auth_error",
    "quota_exceeded",
    "context_length",
    "content_filter",
    "invalid_request",
    "invalid_response",
]
StepAction = Literal["retry", "failover", "fail", "serve"]
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
Preset = Literal["coverage", "healthy", "primary_down", "cascade", "flap", "blackout"]
TemplateRequestTemplateName = Literal["env", "runbook", "curl"]
Format = Literal["litellm", "portkey", "json", "yaml"]


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
    """Whether what is exported or imported behaves otherwise than the original; false for
    advice.
    """


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
    max_tokens: NotRequired[int | None]
    input_cost_per_1m: NotRequired[float | None]
    output_cost_per_1m: NotRequired[float | None]
    params: NotRequired[dict[str, str | float | bool | dict[str, str]] | None]
    metadata: NotRequired[dict[str, Any] | None]


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
    metadata: dict[str, Any]
    """Arbitrary data of the caller."""


class ChainRequest(TypedDict):
    """A chain to create."""

    name: str
    """Chain name; it need not be unique."""
    description: NotRequired[str | None]
    providers: list[ProviderRequest]
    fallback_rules: NotRequired[list[RuleRequest] | None]
    metadata: NotRequired[dict[str, Any] | None]


class ChainPatch(TypedDict):
    """The fields to change: arrays as a whole, null for the default."""

    name: NotRequired[str]
    """Chain name."""
    description: NotRequired[str | None]
    providers: NotRequired[list[ProviderRequest]]
    fallback_rules: NotRequired[list[RuleRequest] | None]
    metadata: NotRequired[dict[str, Any] | None]


class Decision(TypedDict):
    """What the chain does if a provider fails with a condition."""

    condition: DecisionCondition
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


class Step(TypedDict):
    """A step in the path of a prompt."""

    provider: str
    """The provider that is called."""
    attempt: int
    """The number of the attempt at this provider, from 1."""
    condition: DecisionCondition | None
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
    decisions: list[Decision]


class RoutingQuestion(TypedDict):
    """The question that `path` answers."""

    provider: str
    """The provider that always fails."""
    condition: DecisionCondition
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
    condition: DecisionCondition | None
    """The failure of the provider that it concerns; null for none in particular."""
    loss: bool
    """Whether the chain behaves otherwise than the file; false for advice."""


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
    by_default: list[DecisionCondition]
    """Conditions that a default decides, at least for some provider or status."""


InjectedFaultRequest = TypedDict(
    "InjectedFaultRequest",
    {
        "provider": "str",
        "condition": "NotRequired[DecisionCondition | None]",
        "times": "NotRequired[int | None]",
        "from": "NotRequired[int | None]",
        "to": "NotRequired[int | None]",
        "probability": "NotRequired[float | None]",
        "status_code": "NotRequired[int | None]",
        "retry_after_ms": "NotRequired[int | None]",
        "latency_ms": "NotRequired[int | None]",
    },
)


class TestRequest(TypedDict):
    """The test to run."""

    prompt_count: NotRequired[int | None]
    mode: NotRequired[Mode | None]
    preset: NotRequired[Preset | None]
    seed: NotRequired[int | None]
    faults: NotRequired[list[InjectedFaultRequest] | None]
    prompts: NotRequired[list[str] | None]
    deadline_ms: NotRequired[int | None]
    stream: NotRequired[bool | None]
    gateway: NotRequired[Gateway | None]


class Attempt(TypedDict):
    """A call of a provider."""

    provider: str
    """The provider that was called."""
    model_id: str
    """The model."""
    start_ms: float
    """When it started, relative to the start of the prompt."""
    latency_ms: float
    """How long it took."""
    status_code: int | None
    """The HTTP status; null without a response."""
    condition: DecisionCondition | None
    """The failure; null if the provider answered."""
    action: Action | None
    """The next action of the chain; null if the provider answered."""
    wait_ms: float
    """The wait before the next attempt."""
    injected: bool
    """Whether the plan injected a failure or a delay."""
    rule: int | None
    """The index in `fallback_rules` of the rule that decided; null for a default."""
    error: str | None
    """The error in a few words; null without an error."""
    cost_usd: float | None
    """The cost; null if the price or the tokens are unknown."""


class PromptResult(TypedDict):
    """The result of a prompt."""

    index: int
    """The index in the test, from 0."""
    scenario: str
    """The scenario of the plan for this prompt."""
    success: bool
    """Whether a provider answered."""
    served_by: str | None
    """Who answered."""
    fallback_triggered: bool
    """Whether another provider than the first was called."""
    retries_used: int
    """Retries at all providers."""
    total_wait_ms: float
    """Total wait between attempts."""
    latency_ms: float
    """End to end, including failed attempts and waits."""
    error: DecisionCondition | None
    """The final failure; null if the prompt was served."""
    attempts: list[Attempt]
    """The first calls, in order: at most 100, and at most 16 MiB in a result."""
    expected: NotRequired[Expected]
    agrees: NotRequired[bool]
    """With the mode `rehearsal`: whether the gateway did what the chain says. Waits are not
    compared.
    """
    tested: NotRequired[bool]
    """With the mode `rehearsal`: false if a call should have failed and none did, so that
    agreement says nothing.
    """
    attempts_omitted: NotRequired[int]
    """The number of further calls, whose details are left out. Absent if there are none."""


class Check(TypedDict):
    """A check behind the verdict."""

    name: str
    """The name of the check."""
    passed: bool
    advisory: bool
    """Whether a failure only makes the verdict `partial`."""
    detail: str
    """The finding as a sentence."""


class TestResult(TypedDict):
    """A test and its result. While it runs, the figures cover the finished prompts."""

    id: str
    """A UUID."""
    chain_id: str
    """A UUID."""
    chain_name: str
    chain_version: int
    status: Status
    """`running`: also while it waits in the queue and, with several instances on one database,
    until the lease of a dead instance expires (30 s); the figures then cover the stored
    prompts. `failed`: the run itself failed. `cancelled`: stopped by a caller or by a stop of
    the service.
    """
    error: str | None
    """Why the run failed or was cancelled, or why a gateway gave no answers."""
    progress: TestResultProgress
    mode: Mode
    preset: Preset | None
    """The preset; null if the request has faults or the mode takes none."""
    seed: int
    """The seed of the simulation."""
    prompt_count: int
    """All prompts."""
    deadline_ms: int | None
    """The longest duration of a prompt."""
    started_at: str
    """When the test was requested."""
    completed_at: str | None
    duration_ms: float | None
    success_count: int
    """Prompts served."""
    failure_count: int
    """Prompts lost."""
    success_rate: float | None
    fallback_count: int
    """Prompts not served by the first provider."""
    fallback_rate: float | None
    retry_count: int
    """Retries."""
    attempts_total: int
    """Calls."""
    latency_ms: TestResultLatencyMs | None
    """Of prompts, end to end; null if none is finished."""
    added_latency_ms: float | None
    """The mean time before the successful attempt; null if no prompt is served."""
    cost_usd: TestResultCostUsd
    assumptions: list[str]
    """Assumptions of a simulation; empty for real calls."""
    providers: list[TestResultProviders]
    """Figures of each provider."""
    rules: list[TestResultRules]
    """Figures of each rule, in the order of `fallback_rules`."""
    verdict: Verdict | None
    """`pass`: all prompts served, all checks passed. `partial`: all served, an advisory check
    failed. `lost_as_ruled`: a prompt was lost, but as the rules say and within the bounds; it
    is no pass. `fail`: otherwise. `differs`: the gateway of a rehearsal does not do what the
    chain says. Null until the test has ended.
    """
    checks: list[Check]
    """The checks behind the verdict; empty until the test has ended."""
    agreement: NotRequired[Agreement]
    differences: NotRequired[list[Difference]]
    """With the mode `rehearsal`: what the gateway does otherwise."""
    chain: ChainDefinition
    findings: list[Finding]
    """The findings of the import about a condition, of a provider or of none in particular, as
    they were at the start.
    """
    results: list[PromptResult]
    """The finished prompts, in order."""


class TestResultProgress(TypedDict):
    done: int
    """Finished prompts."""
    total: int
    """All prompts."""


class TestResultLatencyMs(TypedDict):
    min: float
    """min"""
    avg: float
    """avg"""
    p50: float
    """p50"""
    p90: float
    """p90"""
    p95: float
    """p95"""
    p99: float
    """p99"""
    max: float
    """max"""


class TestResultCostUsd(TypedDict):
    total: float | None
    """Of all answered attempts; null if a price or the tokens are unknown."""
    wasted: float | None
    """Of unusable answers."""


class TestResultProviders(TypedDict):
    name: str
    attempts: int
    """Calls."""
    successes: int
    """Answers."""
    failures: int
    """Failures."""
    served: int
    """Prompts."""


class TestResultRules(TypedDict):
    condition: Condition
    action: Action
    hits: int
    """The number of failures that the rule decided."""
    never_hit: bool
    """Whether the rule decided none."""


class Gateway(TypedDict):
    """The gateway to rehearse, with the mode `rehearsal`."""

    url: str
    """The base URL of its OpenAI-compatible API, with the version path."""
    model: NotRequired[str | None]
    api_key_env: NotRequired[str | None]
    headers: NotRequired[dict[str, str] | None]
    timeout_ms: NotRequired[int | None]


class Expected(TypedDict):
    """What the chain does with the same failures, by simulation."""

    served_by: str | None
    """Who answers; null if nobody does."""
    attempts: list[ExpectedAttempts]
    """The calls, in order."""


class ExpectedAttempts(TypedDict):
    provider: str
    condition: DecisionCondition | None
    """The failure; null for an answer."""


class Agreement(TypedDict):
    """How far the gateway does what the chain says."""

    prompts: int
    """The finished prompts."""
    agreeing: int
    """The prompts in which the gateway called the same providers in the same order as often,
    with the same end.
    """
    differing: int
    """The prompts in which it did something else."""
    not_tested: int
    """The prompts in which a call should have failed, and the gateway made none that did: they
    test nothing.
    """
    stray_calls: int
    """Calls of the fake providers that belong to no prompt."""


class Difference(TypedDict):
    """What the gateway does otherwise than the chain says."""

    provider: str
    """The provider whose failure, or answer, is followed by something else."""
    condition: DecisionCondition | None
    """How it failed; null if it answered."""
    expected: DifferenceExpected
    actual: DifferenceExpected
    prompts: int
    """In how many prompts."""
    first_index: int
    """The index of the first of them."""
    sentence: str
    """The difference as a sentence."""


class DifferenceExpected(TypedDict):
    calls: list[DifferenceExpectedCalls]
    """The calls, in order."""
    served_by: str | None
    """Who answered; null if nobody did."""


class DifferenceExpectedCalls(TypedDict):
    provider: str
    calls: int
    """How often, in a row."""


class RehearsalToken(TypedDict):
    """The token in the addresses of a chain's fake providers."""

    token: str
    """128 random bits in hexadecimal."""
    base: str
    """The address below which each provider has its own, by its percent-encoded name."""


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
    """Whether the target behaves like the chain and an import gives the same chain."""
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


class AccessInfo(TypedDict):
    """The caller's label and rights."""

    label: str | None
    """The label of the API key; null for a key without one, and if no keys are configured."""
    may_write: bool
    """Whether the caller may change things; otherwise it may only read and export."""
    live_allowed: bool
    """Whether tests may send requests: to the real providers (`drill`, `live`), or to a gateway
    (`rehearsal`).
    """
    version: str
    """The version of the service."""


class RunTestAnswer(TypedDict):
    """What a test would do at most, without starting it."""

    mode: Mode
    preset: Preset | None
    """The preset; null if the request has faults or the mode takes none."""
    prompt_count: int
    """All prompts."""
    max_calls: int
    """The maximum number of calls of providers, injected failures included."""
    max_calls_per_prompt: int
    """The maximum number of calls for one prompt."""


class HealthAnswer(TypedDict):
    status: str
