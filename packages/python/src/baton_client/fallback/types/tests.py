# Written by `node scripts/python-client.ts` from the API description; change that, not this file.
"""Bodies and answers of the fallback service."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from ..._compat import NotRequired
from .common import Action, ChainDefinition, Condition, Conditions, Finding, Mode, Status, Verdict

Endpoint = Literal["chat", "messages", "responses"]
Reasoning = Literal["low", "medium", "high"]
Preset = Literal["coverage", "healthy", "primary_down", "cascade", "flap", "blackout", "streams"]
Format = Literal["litellm", "portkey", "langchain", "ai-sdk", "json"]
Kind = Literal["calls", "end", "received", "cooldown", "draws"]


InjectedFaultRequest = TypedDict(
    "InjectedFaultRequest",
    {
        "provider": "str",
        "condition": "NotRequired[Conditions | None]",
        "times": "NotRequired[int | None]",
        "from": "NotRequired[int | None]",
        "to": "NotRequired[int | None]",
        "probability": "NotRequired[float | None]",
        "status_code": "NotRequired[int | None]",
        "retry_after_ms": "NotRequired[int | None]",
        "latency_ms": "NotRequired[int | None]",
        "after_chunks": "NotRequired[int | None]",
        "stall_ms": "NotRequired[int | None]",
        "error_event": "NotRequired[bool | None]",
        "malformed_chunk": "NotRequired[bool | None]",
        "cut_tool_call": "NotRequired[bool | None]",
        "no_final_event": "NotRequired[bool | None]",
    },
)


class RequestShape(TypedDict):
    """The shape of the requests of a test, in the modes `drill`, `live` and `rehearsal`."""

    endpoint: NotRequired[Endpoint | None]
    stream: NotRequired[bool | str | None]
    tools: NotRequired[bool | list[dict[str, Any]] | None]
    images: NotRequired[bool | None]
    reasoning: NotRequired[Reasoning | None]
    response_format: NotRequired[bool | dict[str, Any] | None]
    max_tokens: NotRequired[int | None]
    requests: NotRequired[list[dict[str, Any]] | None]


class Received(TypedDict):
    """What the caller of the gateway got."""

    status: int | None
    """The HTTP status; null without a response."""
    text_chunks: int
    """The parts of text, or of the arguments of a tool, that arrived."""
    duplicated: int
    """How many of the parts that fake providers send arrived more than once."""
    lost: int
    """How many of the parts of the last provider's answer did not arrive."""
    tool_calls: list[ReceivedToolCalls]
    """The calls of tools."""
    finish_reason: str | None
    """Why the answer ended, in the words of the API; null if it does not say so."""
    error: str | None
    """The error in a few words; null without one."""
    model: str | None
    """The model that the answer names."""
    time_to_first_token_ms: float | None
    """The time to the first content of a streamed answer."""


class ReceivedToolCalls(TypedDict):
    name: str | None
    """The name of the tool."""
    valid: bool
    """Whether its arguments are JSON."""


class Outage(TypedDict):
    """A failure of a provider that lasts."""

    provider: str
    """The name of the provider that fails."""
    from_s: int
    """The second in which it begins."""
    to_s: int
    """The second in which it is over."""
    condition: Conditions
    """How it fails."""
    retry_after_ms: NotRequired[int | None]


class TimelineRequest(TypedDict):
    """Prompts at a steady rate through a chain with its cool-downs, while providers fail for a
    while.
    """

    rate_per_minute: int
    """The prompts of a minute, evenly spaced; the first one is at 0."""
    seconds: int
    """How long prompts are sent."""
    outages: list[Outage]
    """The failures; at a provider, the first one that matches decides."""


class TimelineSecond(TypedDict):
    second: int
    """The second, from 0. Those after the last prompt are only listed if they have calls."""
    calls: list[TimelineSecondCalls]
    out: list[TimelineSecondOut]
    failed: int
    """The prompts begun in this second that were lost."""
    slow: int
    """The prompts begun in this second that were served after a failed call."""


class TimelineSecondCalls(TypedDict):
    provider: str
    """The provider that was called in this second."""
    condition: Conditions | None
    """How it failed; null if it answered."""


class TimelineSecondOut(TypedDict):
    provider: str
    """A provider that is left out by its cool-down, for some of this second."""
    until_s: float
    """When it is back."""


class Timeline(TypedDict):
    """What a test with a timeline did, second by second."""

    rate_per_minute: int
    """The prompts of a minute, as asked for."""
    outages: list[Outage]
    """The failures, as asked for."""
    seconds: list[TimelineSecond]
    only_last: list[TimelineOnlyLast]
    """When all providers but the last one were left out or failed."""
    first_back_s: float | None
    """When the first provider answered for the first time after its last failure; null if it did
    not fail, or did not answer again.
    """
    cost: float | None
    """The cost of all calls in US dollars; null if a price or the tokens are unknown."""


class TimelineOnlyLast(TypedDict):
    from_s: float
    """The begin."""
    to_s: float
    """The end."""


class TestRequest(TypedDict):
    """The test to run."""

    prompt_count: NotRequired[int | None]
    mode: NotRequired[Mode | None]
    preset: NotRequired[Preset | None]
    seed: NotRequired[int | None]
    faults: NotRequired[list[InjectedFaultRequest] | None]
    timeline: NotRequired[TimelineRequest | None]
    prompts: NotRequired[list[str] | None]
    deadline_ms: NotRequired[int | None]
    stream: NotRequired[bool | None]
    request: NotRequired[RequestShape | None]
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
    condition: Conditions | None
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
    error: Conditions | None
    """The final failure; null if the prompt was served."""
    attempts: list[Attempt]
    """The first calls, in order: at most 100, and at most 16 MiB in a result."""
    request: NotRequired[PromptResultRequest]
    received: NotRequired[Received]
    expected: NotRequired[Expected]
    agrees: NotRequired[bool]
    """With the mode `rehearsal`: whether the gateway did what the chain says. Waits are not
    compared.
    """
    tested: NotRequired[bool]
    """With the mode `rehearsal` without a timeline: false if a call should have failed and none
    did, so that agreement says nothing.
    """
    attempts_omitted: NotRequired[int]
    """The number of further calls, whose details are left out. Absent if there are none."""


class PromptResultRequest(TypedDict):
    endpoint: Endpoint
    """The API that was called: that of the gateway, else that of the last provider."""
    stream: bool
    """Whether the answer was streamed."""
    shape: int | None
    """The index in `requests` of the first request with this shape; null without `requests`."""


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
    timeline: NotRequired[Timeline | None]
    """With a timeline: what happened in each second; in a rehearsal what the gateway did. Null
    until the test has ended.
    """
    expected_timeline: NotRequired[Timeline | None]
    """With a timeline in a rehearsal: what the chain alone says, by simulation. Null until the
    test has ended.
    """
    chain: ChainDefinition
    findings: list[Finding]
    """The findings of the import about a condition, of a provider or of none in particular, and
    about cool-downs, as they were at the start. In a rehearsal of an export what that does
    otherwise than the chain.
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
    export_format: NotRequired[Format | None]
    timeout_ms: NotRequired[int | None]


class Expected(TypedDict):
    """What the chain does with the same failures, by simulation."""

    served_by: str | None
    """Who answers; null if nobody does."""
    attempts: list[TimelineSecondCalls]
    """The calls, in order."""


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
    sent_again: int
    """The prompts that only agreed when they were sent again, as they may be if time decides
    about them.
    """
    stray_calls: int
    """Calls of the fake providers that belong to no prompt."""


class Difference(TypedDict):
    """What the gateway does otherwise than the chain says."""

    provider: str
    """The provider whose failure, or answer, is followed by something else."""
    condition: Conditions | None
    """How it failed; null if it answered."""
    status_code: int | None
    """The status of its failure; null without one, and if it answered."""
    kind: Kind
    """`calls`: other calls. `end`: the same calls with another end. `received`: the same calls
    and the same end, but the caller got something else. With a timeline, `cooldown`: a
    provider was called that is left out, or not called although it is not. `draws`: a
    provider of a balanced group got more or fewer calls than draws let expect.
    """
    stream: bool | None
    """Whether the answers were streamed; null if it is the same for both."""
    second: int | None
    """With a timeline: the second in which it began; null for draws, and without a timeline."""
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
