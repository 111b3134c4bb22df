# Written by `node scripts/python-client.ts` from the API description; change that, not this file.
"""Bodies and answers of the handoff service."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from ..._compat import NotRequired
from .common import (
    Action,
    Artifact,
    BatchRefusedErrors,
    CreateRequest,
    CreateRequestActions,
    CreateRequestContext,
    CreateRequestHitl,
    CreateRequestHitlSchema,
    CreateRequestMetadata,
    Decision,
    Dependency,
    FailureLimit,
    Hitl,
    HitlAnsweredBy,
    HitlAskedBy,
    HitlDecision,
    HitlDecisionDecision,
    HitlSchema,
    Packet,
    PacketClaimedBy,
    PacketLease,
    PacketLinks,
    PacketMetadata,
    Priority,
    Status,
    TargetAgent,
    Timeout,
    Turn,
)

State = Literal["open", "answered", "replaced", "withdrawn", "timed_out", "ended"]
Kind = Literal[
    "summary",
    "question",
    "answer",
    "pending",
    "decisions",
    "dependencies",
    "failed",
    "artifacts",
    "conversation",
]
BriefOmittedKind = Literal[
    "summary",
    "question",
    "answer",
    "pending",
    "decisions",
    "dependencies",
    "failed",
    "artifacts",
    "conversation",
    "ancestors",
]
Order = Literal["desc", "asc", "due"]


class PacketSummary(TypedDict):
    id: str
    """A UUID."""
    version: str
    """The version of the packet schema."""
    parent_packet_id: str | None
    status: Status
    """The status of the packet."""
    revision: int
    """The number of the revision; each change increments it."""
    lease: PacketLease | None
    """The lease of the claim; null when the packet is not claimed or the claim does not expire."""
    metadata: PacketMetadata
    hitl: Hitl | None
    not_before: NotRequired[str]
    """From when on it can be claimed; absent if no time was set."""
    due_at: NotRequired[str]
    """By when it should have ended; absent if no time was set."""
    overdue: NotRequired[bool]
    """True if it was open at its `due_at`; otherwise absent."""
    erased: NotRequired[bool]
    """True if its content has been erased; otherwise absent."""
    erased_at: NotRequired[str]
    """When its content was erased; absent if it was not."""
    claimed_by: PacketClaimedBy | None
    claimed_at: str | None
    created_at: str
    """When it was created."""
    updated_at: str
    """When it last changed."""
    _links: PacketLinks
    context: PacketSummaryContext
    counts: PacketSummaryCounts


class PacketSummaryContext(TypedDict):
    summary: str


class PacketSummaryCounts(TypedDict):
    decisions: int
    pending: int
    completed: int
    failed: int
    dependencies: int
    turns: int
    artifacts: int


class ChainRequest(TypedDict):
    metadata: CreateRequestMetadata
    context: CreateRequestContext
    decisions: NotRequired[list[Decision] | None]
    actions: NotRequired[CreateRequestActions | None]
    dependencies: NotRequired[list[Dependency] | None]
    hitl: NotRequired[CreateRequestHitl | None]
    """A checkpoint for a human."""
    not_before: NotRequired[str | None]
    """The packet can be claimed from this moment on, at most a year from now. A time that has
    passed has no effect. A date or date-time of ISO 8601.
    """
    due_at: NotRequired[str | None]
    """The packet should have ended by this moment. If it is still open then, it is overdue. A
    date or date-time of ISO 8601.
    """


class PatchRequest(TypedDict):
    status: NotRequired[Status]
    """The status to move to."""
    metadata: NotRequired[PatchRequestMetadata]
    context: NotRequired[PatchRequestContext]
    decisions: NotRequired[list[PatchRequestDecisions]]
    actions: NotRequired[PatchRequestActions]
    dependencies: NotRequired[list[PatchRequestDependencies]]
    hitl: NotRequired[PatchRequestHitl | None]
    not_before: NotRequired[str | None]
    """Only while the packet is `created`. Null removes it."""
    due_at: NotRequired[str | None]
    """Only while the packet is open. Null removes it."""


class PatchRequestMetadata(TypedDict):
    target_agent: NotRequired[TargetAgent]
    priority: NotRequired[Priority]
    """How urgent it is."""
    tags: NotRequired[list[str]]
    """Freeform tags, used for filtering."""
    subjects: NotRequired[list[str]]
    """Opaque ids of the people whose data the packet holds, by which it can be found and erased."""


class PatchRequestContext(TypedDict):
    summary: NotRequired[str]
    """The work so far."""
    conversation_state: NotRequired[list[Turn]]
    """The conversation so far."""
    artifacts: NotRequired[list[Artifact]]
    """Named values to hand on."""
    custom: NotRequired[dict[str, Any]]
    """Framework-specific or user-defined fields."""


class PatchRequestDecisions(TypedDict):
    id: str
    """The id of the decision within the packet."""
    decision: NotRequired[str]
    """What was decided."""
    rationale: NotRequired[str]
    """Why."""
    alternatives: NotRequired[list[Any]]
    decided_by: NotRequired[str]
    """Who decided."""


class PatchRequestActions(TypedDict):
    pending: NotRequired[list[PatchRequestActionsPending]]
    completed: NotRequired[list[PatchRequestActionsCompleted]]
    failed: NotRequired[list[PatchRequestActionsFailed]]


class PatchRequestActionsPending(TypedDict):
    id: str
    """The id of the action within the packet."""
    description: NotRequired[str]
    """What needs to be done."""
    assignee: NotRequired[str]
    """Who should do it."""
    priority: NotRequired[Priority]
    """How urgent it is."""
    depends_on: NotRequired[list[str]]
    """Ids of the actions to complete first."""


class PatchRequestActionsCompleted(TypedDict):
    id: str
    """The id of the action within the packet."""
    description: NotRequired[str]
    """What was done."""
    result: NotRequired[str]
    """The result."""
    completed_by: NotRequired[str]
    """Who did it."""


class PatchRequestActionsFailed(TypedDict):
    id: str
    """The id of the action within the packet."""
    description: NotRequired[str]
    """What was tried."""
    error: NotRequired[str]
    """What went wrong."""


class PatchRequestDependencies(TypedDict):
    id: str
    """The id of the dependency within the packet."""
    type: NotRequired[str]
    """The kind of dependency."""
    description: NotRequired[str]
    """What the packet depends on."""
    status: NotRequired[str]
    """The status of the dependency."""
    source: NotRequired[str]
    """Where it comes from."""


class PatchRequestHitl(TypedDict):
    required: NotRequired[bool]
    """Whether a person must answer before the packet can be completed."""
    reason: NotRequired[str]
    """Why a person is asked."""
    question: NotRequired[str]
    """The question. With an action it may be left out."""
    options: NotRequired[list[Any]]
    strict_options: NotRequired[bool]
    """Whether the response must be one of the options."""
    schema: NotRequired[HitlSchema]
    """A form for the answer, as JSON Schema: a flat object of texts, numbers, booleans and
    choices.
    """
    action: NotRequired[Action]
    responder: NotRequired[str]
    """Who is asked: a name or a mail address. It is shown, and is no permission."""
    remind_after_seconds: NotRequired[int]
    """When to remind the channels once of the open question, from the moment it was first asked."""
    timeout_seconds: NotRequired[int]
    """How long to wait for an answer, from the moment the question was first asked."""
    exclude_source: NotRequired[bool]
    """Whether the answer is refused from the keys that created or claimed the packet or asked
    the question, and from keys that they created. These keys can neither withdraw nor change
    the open question, nor lift this before it is asked, and it stays for later questions of
    the packet until another key lifts it; while a question is open, nobody can.
    """
    require_verified: NotRequired[bool]
    """Whether the answer is refused from anybody whose name is not verified (`answered_by`), and
    from tokens, which programs hold. It stays for later questions of the packet until a key
    that did not ask lifts it.
    """
    on_timeout: NotRequired[Timeout]
    """What happens at the timeout; `keep` if left out."""
    key: NotRequired[str]
    """The asker's own name of the question, unique in the packet: asking again with the same key
    and the same fields is the same question, open or answered.
    """


class ClaimRequest(TypedDict):
    agent_id: str
    """The id of the agent that claims the packet."""
    agent_name: NotRequired[str | None]
    """The name of the agent; its id if left out."""
    framework: NotRequired[str | None]
    """What the agent runs on."""
    lease_seconds: NotRequired[int | None]
    """How long the claim lasts unless it is renewed. Without it the claim does not expire."""


class RespondRequest(TypedDict):
    decision: NotRequired[HitlDecisionDecision | None]
    """What the person decides about an action; `response` alone is read as the decision."""
    arguments: NotRequired[dict[str, Any] | None]
    """The whole arguments as the person changed them, with the decision `edit`."""
    message: NotRequired[str | None]
    """What the person says to the agent: required with `respond`, optional with `reject`."""
    remember: NotRequired[RespondRequestRemember | None]
    response: NotRequired[str | None]
    """The person's answer; the history keeps it. Required unless the question has a schema."""
    data: NotRequired[dict[str, Any] | None]
    """The fields of the question's schema. Required if it has one."""
    digest: NotRequired[str | None]
    """The `hitl.digest` of what the person was shown; 409 `STALE` if the question or what it is
    about has changed since.
    """
    responded_by: NotRequired[str | None]
    """The person who answers; whom the key is for, or who signed in, if left out."""
    notes: NotRequired[str | None]
    """Additional remarks."""
    partial: NotRequired[bool | None]
    """Whether the page left out text of the packet and the person answered without opening it."""


class RespondRequestRemember(TypedDict):
    scope: Literal["call", "tool"]
    """`call`: the same tool with the same arguments; `tool`: with any."""
    seconds: int
    """How long it stands."""


class HistoryEvent(TypedDict):
    timestamp: str
    """When it happened."""
    event_type: str
    """What happened."""
    actor: str
    """Who did it."""
    key_id: str | None
    """The API key that was used; null when the service itself acted."""
    details: dict[str, Any]


class PacketList(TypedDict):
    packets: list[PacketSummary | Packet]
    total: int
    limit: int
    offset: int
    next_cursor: str | None


class PacketHit(TypedDict):
    id: str
    """A UUID."""
    version: str
    """The version of the packet schema."""
    parent_packet_id: str | None
    status: Status
    """The status of the packet."""
    revision: int
    """The number of the revision; each change increments it."""
    lease: PacketLease | None
    """The lease of the claim; null when the packet is not claimed or the claim does not expire."""
    metadata: PacketMetadata
    hitl: Hitl | None
    not_before: NotRequired[str]
    """From when on it can be claimed; absent if no time was set."""
    due_at: NotRequired[str]
    """By when it should have ended; absent if no time was set."""
    overdue: NotRequired[bool]
    """True if it was open at its `due_at`; otherwise absent."""
    erased: NotRequired[bool]
    """True if its content has been erased; otherwise absent."""
    erased_at: NotRequired[str]
    """When its content was erased; absent if it was not."""
    claimed_by: PacketClaimedBy | None
    claimed_at: str | None
    created_at: str
    """When it was created."""
    updated_at: str
    """When it last changed."""
    _links: PacketLinks
    context: PacketSummaryContext
    counts: PacketSummaryCounts
    snippet: str
    """An excerpt around the words that match."""


class SearchList(TypedDict):
    packets: list[PacketHit]
    order: Literal["rank", "newest"]
    """`rank`: the best match first; `newest`: too many packets match to rank them, so the newest
    comes first.
    """
    total: int
    limit: int
    offset: int
    next_cursor: str | None
    total_is: Literal["exact", "at_least"]
    """Whether `total` is the number of matches or a lower bound."""


class QuestionView(TypedDict):
    question_id: str
    """A UUID."""
    state: State
    """`replaced`: an update made another question of it, named in `replaced_by`; `timed_out`:
    from the second in which the time to answer elapses; `ended`: its packet ended first.
    """
    question: Question
    asked_by: HitlAskedBy
    requested_at: str
    """When the question was first asked."""
    expires_at: str | None
    shown: dict[str, Any] | None
    """What a person is shown, or was shown who answered: the document of which `digest` is the
    SHA-256; null if it ended without an answer.
    """
    digest: str
    """The SHA-256, in hex, of what a person is shown: the canonical JSON (RFC 8785) of
    `{question, reason, options, schema, summary, pending, decisions}`, with null for options
    or a schema that the question does not have, and with `action` where it has one. It is set
    when the question is asked.
    """
    answer: Answer | None
    approvals: list[Any]
    """Who has approved so far; empty for a question that one person answers."""
    replaced_by: str | None


class AskRequest(TypedDict):
    """The fields of `hitl`."""

    required: NotRequired[bool | None]
    """Whether a person must answer before the packet can be completed; true if left out."""
    reason: NotRequired[str | None]
    """Why a person is asked."""
    question: NotRequired[str | None]
    """The question. With an action it may be left out."""
    options: NotRequired[list[Any] | None]
    strict_options: NotRequired[bool | None]
    """Whether the response must be one of the options."""
    schema: NotRequired[CreateRequestHitlSchema | None]
    """A form for the answer, as JSON Schema: a flat object of texts, numbers, booleans and
    choices.
    """
    action: NotRequired[Action | None]
    responder: NotRequired[str | None]
    """Who is asked: a name or a mail address. It is shown, and is no permission."""
    remind_after_seconds: NotRequired[int | None]
    """When to remind the channels once of the open question, from the moment it was first asked."""
    timeout_seconds: NotRequired[int | None]
    """How long to wait for an answer, from the moment the question was first asked."""
    exclude_source: NotRequired[bool | None]
    """Whether the answer is refused from the keys that created or claimed the packet or asked
    the question, and from keys that they created. These keys can neither withdraw nor change
    the open question, nor lift this before it is asked, and it stays for later questions of
    the packet until another key lifts it; while a question is open, nobody can.
    """
    require_verified: NotRequired[bool | None]
    """Whether the answer is refused from anybody whose name is not verified (`answered_by`), and
    from tokens, which programs hold. It stays for later questions of the packet until a key
    that did not ask lifts it.
    """
    on_timeout: NotRequired[Timeout | None]
    """What happens at the timeout; `keep` if left out."""
    key: NotRequired[str | None]
    """The asker's own name of the question, unique in the packet: asking again with the same key
    and the same fields is the same question, open or answered.
    """
    question_id: NotRequired[Any]
    """The service sets it; a request may repeat what stands there."""
    asked_by: NotRequired[Any]
    """The service sets it; a request may repeat what stands there."""
    requested_at: NotRequired[Any]
    """The service sets it; a request may repeat what stands there."""
    expires_at: NotRequired[Any]
    """The service sets it; a request may repeat what stands there."""
    remind_at: NotRequired[Any]
    """The service sets it; a request may repeat what stands there."""
    digest: NotRequired[Any]
    """The service sets it; a request may repeat what stands there."""
    first_question_id: NotRequired[Any]
    """The service sets it; a request may repeat what stands there."""
    ended_at: NotRequired[Any]
    """The service sets it; a request may repeat what stands there."""
    approvals: NotRequired[Any]
    """The service sets it; a request may repeat what stands there."""
    step: NotRequired[Any]
    """The service sets it; a request may repeat what stands there."""
    edited: NotRequired[Any]
    """The service sets it; a request may repeat what stands there."""
    remember: NotRequired[Any]
    """The service sets it; a request may repeat what stands there."""
    verified_only: NotRequired[Any]
    """The service sets it; a request may repeat what stands there."""
    shadow: NotRequired[Any]
    """The service sets it; a request may repeat what stands there."""
    response: NotRequired[Any]
    """The service sets it; a request may repeat what stands there."""
    data: NotRequired[Any]
    """The service sets it; a request may repeat what stands there."""
    responded_by: NotRequired[Any]
    """The service sets it; a request may repeat what stands there."""
    answered_by: NotRequired[Any]
    """The service sets it; a request may repeat what stands there."""
    responded_at: NotRequired[Any]
    """The service sets it; a request may repeat what stands there."""
    notes: NotRequired[Any]
    """The service sets it; a request may repeat what stands there."""
    partial: NotRequired[Any]
    """The service sets it; a request may repeat what stands there."""
    decision: NotRequired[Any]
    """The service sets it; a request may repeat what stands there."""


class Question(TypedDict):
    """A checkpoint for a human."""

    required: bool
    """Whether a person must answer before the packet can be completed."""
    reason: str
    """Why a person is asked."""
    question: str
    """The question. With an action it may be left out."""
    options: NotRequired[list[Any]]
    strict_options: NotRequired[bool]
    """Whether the response must be one of the options."""
    schema: NotRequired[HitlSchema]
    """A form for the answer, as JSON Schema: a flat object of texts, numbers, booleans and
    choices.
    """
    action: NotRequired[Action]
    responder: NotRequired[str]
    """Who is asked: a name or a mail address. It is shown, and is no permission."""
    remind_after_seconds: NotRequired[int]
    """When to remind the channels once of the open question, from the moment it was first asked."""
    timeout_seconds: NotRequired[int]
    """How long to wait for an answer, from the moment the question was first asked."""
    exclude_source: NotRequired[bool]
    """Whether the answer is refused from the keys that created or claimed the packet or asked
    the question, and from keys that they created. These keys can neither withdraw nor change
    the open question, nor lift this before it is asked, and it stays for later questions of
    the packet until another key lifts it; while a question is open, nobody can.
    """
    require_verified: NotRequired[bool]
    """Whether the answer is refused from anybody whose name is not verified (`answered_by`), and
    from tokens, which programs hold. It stays for later questions of the packet until a key
    that did not ask lifts it.
    """
    on_timeout: NotRequired[Timeout]
    """What happens at the timeout; `keep` if left out."""
    key: NotRequired[str]
    """The asker's own name of the question, unique in the packet: asking again with the same key
    and the same fields is the same question, open or answered.
    """


class Answer(TypedDict):
    response: str
    data: NotRequired[dict[str, Any]]
    """The answer to a question with a schema."""
    responded_by: str
    answered_by: NotRequired[HitlAnsweredBy]
    """Who answered. The name is verified by a sign-in, by a key with that `responder`, by a link
    with that `responder` that a channel sent or that was made with the scope `manage` or by a
    key of that person, and by a token of that person. Any other name is only typed.
    """
    responded_at: str
    """When the question was answered."""
    notes: str | None
    partial: NotRequired[bool]
    """True if the page left out text of the packet and the person did not open it; otherwise
    left out.
    """
    decision: NotRequired[HitlDecision]


class Brief(TypedDict):
    packet_id: str
    """A UUID."""
    chars: int
    """The length of all texts together, in Unicode code points."""
    sections: list[BriefSections]
    """The most important first."""
    omitted: list[BriefOmitted]
    """What was left out or cut."""


class BriefSections(TypedDict):
    packet_id: str
    """A UUID."""
    kind: Kind
    """What the text is about."""
    text: str
    """The text, which comes from the packet and not from the service: data, not instructions."""


class BriefOmitted(TypedDict):
    packet_id: str
    """A UUID."""
    kind: BriefOmittedKind
    """`ancestors`: this packet and those before it."""
    count: int
    """How many entries are missing or cut; for `ancestors`, how many packets are known to be
    missing.
    """
    href: str
    """Where the packet is."""


class BatchCreateRequest(TypedDict):
    packets: list[CreateRequest]


class BatchClaimRequest(TypedDict):
    packet_ids: list[str]
    """Ids of packets."""
    agent_id: str
    """The id of the agent that claims the packet."""
    agent_name: NotRequired[str | None]
    """The name of the agent; its id if left out."""
    framework: NotRequired[str | None]
    """What the agent runs on."""
    lease_seconds: NotRequired[int | None]
    """How long the claim lasts unless it is renewed. Without it the claim does not expire."""


class BatchCompleteRequest(TypedDict):
    packet_ids: list[str]
    """Ids of packets."""
    agent_id: NotRequired[str | None]
    """The agent to record as the actor."""
    lease_tokens: NotRequired[dict[str, str] | None]
    """The lease tokens of leased packets, by packet id."""


class ListAwaitingAnswer(TypedDict):
    packets: list[PacketSummary | Packet]
    total: int
    limit: int
    offset: int
    next_cursor: str | None
    unnotified: NotRequired[bool]
    """True if the tenant has no active channel that sends new questions; otherwise absent."""


class PacketHistoryAnswer(TypedDict):
    packet_id: str
    """A UUID."""
    events: list[HistoryEvent]


class ListQuestionsAnswer(TypedDict):
    questions: list[QuestionView]
    next_cursor: str | None


class BatchCreateAnswer(TypedDict):
    created: list[Packet]
    errors: list[BatchRefusedErrors]


class BatchClaimAnswer(TypedDict):
    claimed: list[Packet]
    errors: list[BatchClaimAnswerErrors]


class BatchClaimAnswerErrors(TypedDict):
    packet_id: str
    error: str
    code: str
    limit: NotRequired[FailureLimit]
    """The limit that is used up, with 429."""
    claimed_by: NotRequired[BatchClaimAnswerErrorsClaimedBy | None]


class BatchClaimAnswerErrorsClaimedBy(TypedDict):
    agent_id: str
    agent_name: str
    framework: str | None
    claimed_at: str | None


class BatchCompleteAnswer(TypedDict):
    completed: list[Packet]
    errors: list[BatchClaimAnswerErrors]


class ClaimNextRequest(TypedDict):
    agent_id: str
    """The id of the agent that claims the packet."""
    agent_name: NotRequired[str | None]
    """The name of the agent; its id if left out."""
    framework: NotRequired[str | None]
    """What the agent runs on."""
    lease_seconds: NotRequired[int | None]
    """How long the claim lasts unless it is renewed. Without it the claim does not expire."""
    target_agent: NotRequired[str | None]
    """The target agent of the packets; `agent_id` if left out, `*` for any."""
    tags: NotRequired[list[str] | None]
    """Only packets that have all of these tags."""
    priorities: NotRequired[list[Priority] | None]
    """Only packets of these priorities; all if left out."""
    order: NotRequired[Literal["priority", "due"] | None]
    """Within a priority, `priority`, the default, takes the oldest packet first, `due` the one
    with the nearest `due_at`.
    """
    wait_seconds: NotRequired[int | None]
    """How long to wait if no packet is available. Default: 0."""


class RenewLeaseRequest(TypedDict):
    lease_seconds: NotRequired[int | None]
    """The duration of the lease from now; the previous duration if left out."""


class RenewLeaseAnswer(TypedDict):
    lease: PacketLease
