# Written by `node scripts/python-client.ts` from the API description; change that, not this file.
"""Bodies and answers of the handoff service."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from ..._compat import NotRequired
from .common import Action, Artifact, HitlDecisionDecision, HitlRemember, Priority, Timeout, Turn

ExecutionStatus = Literal["started", "succeeded", "failed"]
StepOnTimeout = Literal["reject", "next", "keep"]
ReplayPolicyAnswerDisagreeingPolicy = Literal["approve", "reject", "ask"]


class ApprovalRequest(TypedDict):
    agent: ApprovalRequestAgent
    """The agent that asks, and holds the packet."""
    action: Action
    reason: NotRequired[str | None]
    """Why a person is asked."""
    summary: NotRequired[str | None]
    """The work so far, in natural language; the action in words if left out."""
    context: NotRequired[ApprovalRequestContext | None]
    tags: NotRequired[list[str] | None]
    """Freeform tags, used for filtering."""
    subjects: NotRequired[list[str] | None]
    """Opaque ids of the people whose data the packet holds, by which it can be found and erased."""
    priority: NotRequired[Priority | None]
    """How urgent it is. Default: normal."""
    responder: NotRequired[str | None]
    """Who is asked: a name or a mail address. It is shown, and is no permission."""
    exclude_source: NotRequired[bool | None]
    """Whether the key that asks may not answer; true if left out."""
    timeout_seconds: NotRequired[int | None]
    """How long to wait for an answer, from the moment the question was first asked."""
    on_timeout: NotRequired[Timeout | None]
    """What happens at the timeout; `keep` if left out."""
    parent_packet_id: NotRequired[str | None]
    """A UUID."""


class ApprovalRequestAgent(TypedDict):
    """The agent that asks, and holds the packet."""

    id: str
    """The agent's id."""
    name: NotRequired[str | None]
    """The agent's name; its id if left out."""
    framework: NotRequired[str | None]
    """What the agent runs on."""


class ApprovalRequestContext(TypedDict):
    conversation_state: NotRequired[list[Turn] | None]
    """The conversation so far."""
    artifacts: NotRequired[list[Artifact] | None]
    """Named values to hand on."""
    custom: NotRequired[dict[str, Any] | None]
    """Framework-specific or user-defined fields."""


class Execution(TypedDict):
    id: str
    question_id: str
    status: ExecutionStatus
    """`started` stays if the process dies before it reports the end: then it may have happened."""
    arguments_digest: str
    """The SHA-256, in hex, of the canonical JSON (RFC 8785) of the arguments."""
    started_at: str
    """When it was started."""
    started_by: ExecutionStartedBy
    ended_at: str | None
    result: Any
    """What was reported, any JSON; null before."""


class ExecutionStartedBy(TypedDict):
    agent_id: str
    key_id: str | None


class Policy(TypedDict):
    name: str
    """The name of the policy."""
    version: int
    """The number of the version. Each change increments it, also after a removal."""
    description: str | None
    order: int
    match: PolicyMatch
    rules: list[PolicyRules]
    """The first rule that fits decides; if none fits, anybody but the asker is asked, and only
    verified names count.
    """
    mode: Literal["enforce", "shadow"]
    remember: HitlRemember | None
    shadow: PolicyShadow
    warnings: list[str]
    """What will probably not work as it should, one sentence each."""
    created_at: str
    """When it was first published, or published again after a removal."""
    updated_at: str
    """When its version was published."""


class PolicyMatch(TypedDict):
    agents: list[str]
    tools: list[str]
    tags: list[str]


class PolicyRules(TypedDict):
    when: NotRequired[dict[str, Any]]
    """A JSON Schema (2020-12) of `{tool, arguments, agent, framework, tags, priority, custom}`,
    with the bounds of contracts; left out: any. A rule that approves may use only `type`,
    `properties`, `required`, `const`, `enum`, `minimum`, `maximum`, `exclusiveMinimum`,
    `exclusiveMaximum`, `minLength`, `maxLength`, `items` and `allOf`, and everything that it
    names must be there and have the type that it is compared as.
    """
    then: PolicyRulesThen
    """What the rule decides: one of `approve`, `reject` and `ask`."""


class PolicyRulesThen(TypedDict):
    """What the rule decides: one of `approve`, `reject` and `ask`."""

    approve: NotRequired[str]
    """The reason. The action is approved without a person."""
    reject: NotRequired[str]
    """The reason. The action is rejected without a person."""
    ask: NotRequired[list[Step]]
    """The steps, one after the other."""


class PolicyShadow(TypedDict):
    asked: int
    """Actions about which it would have asked somebody."""
    approved: int
    rejected: int


class PolicyRequest(TypedDict):
    description: NotRequired[str | None]
    """What the policy is for."""
    order: NotRequired[int | None]
    """Policies are tried by this number, 0 if left out, then by name."""
    match: NotRequired[PolicyRequestMatch | None]
    """Which actions it judges; what is left out or empty fits everything."""
    rules: list[PolicyRequestRules]
    """The first rule that fits decides; if none fits, anybody but the asker is asked, and only
    verified names count.
    """
    mode: NotRequired[Literal["enforce", "shadow"] | None]
    """`shadow`: it decides nothing; what it would have decided is recorded. `enforce` if left
    out.
    """
    remember: NotRequired[PolicyRequestRemember | None]
    """What approvers may let stand for later actions; nothing if left out."""


class PolicyRequestMatch(TypedDict):
    """Which actions it judges; what is left out or empty fits everything."""

    agents: NotRequired[list[str] | None]
    tools: NotRequired[list[str] | None]
    tags: NotRequired[list[str] | None]


class PolicyRequestRules(TypedDict):
    when: NotRequired[dict[str, Any] | None]
    """A JSON Schema (2020-12) of `{tool, arguments, agent, framework, tags, priority, custom}`,
    with the bounds of contracts; left out: any. A rule that approves may use only `type`,
    `properties`, `required`, `const`, `enum`, `minimum`, `maximum`, `exclusiveMinimum`,
    `exclusiveMaximum`, `minLength`, `maxLength`, `items` and `allOf`, and everything that it
    names must be there and have the type that it is compared as.
    """
    then: PolicyRequestRulesThen
    """What the rule decides: one of `approve`, `reject` and `ask`."""


class PolicyRequestRulesThen(TypedDict):
    """What the rule decides: one of `approve`, `reject` and `ask`."""

    approve: NotRequired[str | None]
    """The reason. The action is approved without a person."""
    reject: NotRequired[str | None]
    """The reason. The action is rejected without a person."""
    ask: NotRequired[list[Step] | None]
    """The steps, one after the other."""


class PolicyRequestRemember(TypedDict):
    """What approvers may let stand for later actions; nothing if left out."""

    scope: Literal["call", "tool"]
    """`call`: the same call; `tool`: any call of the tool too."""
    max_seconds: int
    """How long at most."""


class ReplayRequest(TypedDict):
    policy: NotRequired[PolicyRequest | None]
    since: NotRequired[str | None]
    """Only actions that were decided from then on. A date or date-time of ISO 8601."""
    until: NotRequired[str | None]
    """Only actions that were decided before then. A date or date-time of ISO 8601."""
    limit: NotRequired[int | None]
    """The most past actions to read, the latest first; 1,000 if left out."""


Step = TypedDict(
    "Step",
    {
        "from": "list[str]",
        "count": "NotRequired[int]",
        "timeout_seconds": "NotRequired[int]",
        "on_timeout": "NotRequired[StepOnTimeout]",
        "escalate": "NotRequired[list[StepEscalate]]",
    },
)


class StepEscalate(TypedDict):
    after_seconds: int
    """When, from the beginning of the step."""
    to: list[str]
    """Who is asked in addition from then on."""


class TryRequest(TypedDict):
    agent: str
    """The id of the agent that would ask."""
    framework: NotRequired[str | None]
    """What the agent runs on."""
    action: TryRequestAction
    tags: NotRequired[list[str] | None]
    priority: NotRequired[Priority | None]
    """How urgent it is. Default: normal."""
    custom: NotRequired[dict[str, Any] | None]
    """`context.custom` of the packet."""


class TryRequestAction(TypedDict):
    tool: str
    """The tool."""
    arguments: dict[str, Any]
    """The arguments of the call."""


class Group(TypedDict):
    name: str
    """The name of the group; policies name it as `group:NAME`."""
    version: int
    """The number of the version. Each change increments it, also after a removal."""
    members: list[str]
    """The people of the group. Names are compared trimmed, in Unicode NFC, without case."""
    created_at: str
    """When it was first published, or published again after a removal."""
    updated_at: str
    """When its version was published."""


class GroupRequest(TypedDict):
    members: list[str]
    """The people of the group. Names are compared trimmed, in Unicode NFC, without case."""


Delegation = TypedDict(
    "Delegation",
    {
        "person": "str",
        "version": "int",
        "to": "str",
        "from": "str | None",
        "until": "str",
        "reason": "str | None",
        "created_at": "str",
        "updated_at": "str",
    },
)


DelegationRequest = TypedDict(
    "DelegationRequest",
    {
        "to": "str",
        "from": "NotRequired[str | None]",
        "until": "str",
        "reason": "NotRequired[str | None]",
    },
)


class StandingApproval(TypedDict):
    id: str
    """A UUID."""
    person: str
    """Whose approval it is."""
    agent_id: str
    """The agent for whose calls it stands, asked for with a key that is bound to it."""
    tool: str
    scope: Literal["call", "tool"]
    """`call`: the same arguments; `tool`: any."""
    arguments_digest: str | None
    """The SHA-256 of the canonical JSON (RFC 8785) of the arguments; null for any."""
    packet_id: str
    """The packet in which it was given."""
    created_at: str
    """When it was given."""
    expires_at: str
    """Until when it stands."""
    uses: int
    """How often it has counted as the approval of its person."""


class StartExecutionRequest(TypedDict):
    arguments_digest: str
    """The `hitl.decision.arguments_digest` of what is executed: the SHA-256 of the canonical
    JSON (RFC 8785) of the arguments.
    """


class StartExecutionAnswer(TypedDict):
    execution: Execution


class EndExecutionRequest(TypedDict):
    status: Literal["succeeded", "failed"]
    """How it ended."""
    result: NotRequired[Any]
    """What came of it, any JSON of at most 64 KiB."""


class ListPoliciesAnswer(TypedDict):
    policies: list[Policy]
    next_cursor: str | None


class TryPoliciesAnswer(TypedDict):
    policy: str | None
    """The policy that decides; null if none fits."""
    rule: int | None
    """The number of its rule, from 1; null if none fits."""
    then: PolicyRulesThen | None
    """What it decides. Null: anybody who may answer is asked; where a policy matches, anybody
    but the asker, and only verified names count. A rule approves only for an agent that the
    asking key is bound to.
    """
    skipped: list[TryPoliciesAnswerSkipped]
    """The policies and rules before it, and where they do not fit."""


class TryPoliciesAnswerSkipped(TypedDict):
    policy: str
    rule: int | None
    """The number of the rule, from 1; null if the policy does not match."""
    path: str
    """The part of `match`, or of the action, that does not fit."""


class ReplayPolicyAnswer(TypedDict):
    actions: int
    """The past actions that the policy matches."""
    approved: int
    """Those that a rule would have approved."""
    rejected: int
    asked: int
    """Those about which somebody would have been asked."""
    agreeing: int
    """Those that a rule would have decided as people did."""
    disagreeing: list[ReplayPolicyAnswerDisagreeing]
    """Those that a rule would have decided otherwise."""


class ReplayPolicyAnswerDisagreeing(TypedDict):
    packet_id: str
    person: HitlDecisionDecision
    """What people decided."""
    policy: ReplayPolicyAnswerDisagreeingPolicy
    """What the policy would have decided."""
    rule: int | None


class ListGroupsAnswer(TypedDict):
    groups: list[Group]
    next_cursor: str | None


class ListDelegationsAnswer(TypedDict):
    delegations: list[Delegation]
    next_cursor: str | None


class ListStandingApprovalsAnswer(TypedDict):
    standing_approvals: list[StandingApproval]
    next_cursor: str | None
