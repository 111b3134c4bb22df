# Written by `node scripts/python-client.ts` from the API description; change that, not this file.
"""The bodies and answers of the handoff service. Times are texts of ISO 8601."""

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
Status = Literal[
    "created",
    "claimed",
    "in_progress",
    "awaiting_human",
    "completed",
    "failed",
    "expired",
]
Priority = Literal["low", "normal", "high", "critical"]
Type = Literal["string", "number", "integer", "boolean", "array"]
HitlSchemaPropertiesItemsType = Literal["string", "number", "integer"]
Format = Literal["email", "uri", "date", "date-time"]
Timeout = Literal["keep", "fail", "expire"]
TrialErrorsCode = Literal["VALIDATION_ERROR", "CONTRACT_VIOLATION", "LOOP_GUARD", "RATE_LIMITED"]
State = Literal["open", "answered", "replaced", "withdrawn", "timed_out", "ended"]
AnswerLinkStatus = Literal["open", "answered", "closed", "revoked", "expired"]
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
Events = Literal[
    "packet.created",
    "packet.claimed",
    "packet.in_progress",
    "packet.awaiting_human",
    "packet.completed",
    "packet.failed",
    "packet.expired",
    "hitl.response_ready",
]
DeliveryStatus = Literal["pending", "failed", "delivered", "dead_letter", "cancelled"]
Error = Literal[
    "timeout",
    "dns_error",
    "connection_refused",
    "connection_reset",
    "tls_error",
    "redirect_refused",
    "address_refused",
    "http_status",
    "smtp_status",
    "not_configured",
    "internal_error",
]
ChannelEvents = Literal["asked", "reminded", "answered"]
StepOnTimeout = Literal["reject", "next", "keep"]
Tier = Literal["free", "pro", "business"]
Scopes = Literal["read", "work", "respond", "manage"]


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


class Packet(TypedDict):
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
    claimed_by: PacketClaimedBy | None
    claimed_at: str | None
    created_at: str
    """When it was created."""
    updated_at: str
    """When it last changed."""
    _links: PacketLinks
    context: PacketContext
    decisions: list[Decision]
    actions: PacketActions
    dependencies: list[Dependency]


class PacketLease(TypedDict):
    token: NotRequired[str]
    """The holder must send it to change the packet. It is only in the answer to the claim."""
    generation: int
    """The number of the lease, counted from the first lease of the packet."""
    expires_at: str | None


class PacketMetadata(TypedDict):
    source_agent: SourceAgent
    target_agent: TargetAgent
    priority: Priority
    """How urgent it is."""
    tags: list[str]
    """Freeform tags, used for filtering."""
    created_at: str
    """When the packet was created."""


class PacketClaimedBy(TypedDict):
    agent_id: str
    agent_name: str
    framework: str | None


class PacketLinks(TypedDict):
    self: str
    claim: str
    history: str


class PacketContext(TypedDict):
    summary: str
    conversation_state: list[Turn]
    artifacts: list[Artifact]
    custom: dict[str, Any]
    """Framework-specific or user-defined fields."""


class PacketActions(TypedDict):
    pending: list[PendingAction]
    completed: list[CompletedAction]
    failed: list[FailedAction]


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


class SourceAgent(TypedDict):
    """The agent that hands over."""

    id: str
    """The agent's id."""
    name: str
    """The agent's name."""
    framework: str
    """What the agent runs on."""


class TargetAgent(TypedDict):
    """The agent that should continue the work."""

    id: str
    """The agent's id."""
    name: str
    """The agent's name."""
    framework: NotRequired[str]
    """What the agent runs on."""


class Turn(TypedDict):
    role: str
    """Who spoke: user, assistant, tool ..."""
    content: str
    """What was said."""
    timestamp: NotRequired[str]
    """When. A date or date-time of ISO 8601."""


class Artifact(TypedDict):
    key: str
    """What the artifact is called."""
    value: Any
    """Any JSON."""
    content_type: NotRequired[str]
    """A media type."""


class Decision(TypedDict):
    id: str
    """The id of the decision within the packet."""
    decision: str
    """What was decided."""
    rationale: str
    """Why."""
    alternatives: NotRequired[list[Any]]
    decided_by: NotRequired[str]
    """Who decided."""


class PendingAction(TypedDict):
    id: str
    """The id of the action within the packet."""
    description: str
    """What needs to be done."""
    assignee: str
    """Who should do it."""
    priority: NotRequired[Priority]
    """How urgent it is."""
    depends_on: NotRequired[list[str]]
    """Ids of the actions to complete first."""


class CompletedAction(TypedDict):
    id: str
    """The id of the action within the packet."""
    description: str
    """What was done."""
    result: str
    """The result."""
    completed_by: NotRequired[str]
    """Who did it."""


class FailedAction(TypedDict):
    id: str
    """The id of the action within the packet."""
    description: str
    """What was tried."""
    error: str
    """What went wrong."""


class Dependency(TypedDict):
    id: str
    """The id of the dependency within the packet."""
    type: str
    """The kind of dependency."""
    description: str
    """What the packet depends on."""
    status: NotRequired[str]
    """The status of the dependency."""
    source: NotRequired[str]
    """Where it comes from."""


class Hitl(TypedDict):
    required: bool
    """Whether a person must answer before the packet can be completed."""
    reason: str
    """Why a person is asked."""
    question: str
    """The question."""
    options: NotRequired[list[Any]]
    strict_options: NotRequired[bool]
    """Whether the response must be one of the options."""
    schema: NotRequired[HitlSchema]
    """A form for the answer, as JSON Schema: a flat object of texts, numbers, booleans and
    choices.
    """
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
    on_timeout: NotRequired[Timeout]
    """What happens at the timeout; `keep` if left out."""
    key: NotRequired[str]
    """The asker's own name of the question, unique in the packet: asking again with the same key
    and the same fields is the same question, open or answered.
    """
    response: str | None
    responded_by: str | None
    responded_at: str | None
    notes: str | None
    question_id: str | None
    """Null until it is asked."""
    asked_by: HitlAskedBy | None
    """The agent that asked: the holder of the packet, or the agent that moved it to
    awaiting_human; null until the question is asked.
    """
    requested_at: str | None
    expires_at: str | None
    remind_at: NotRequired[str | None]
    """Null when it was sent, or the question is answered."""
    data: NotRequired[dict[str, Any]]
    """The answer to a question with a schema."""
    digest: NotRequired[str]
    """The SHA-256, in hex, of what a person is shown: the canonical JSON (RFC 8785) of
    `{question, reason, options, schema, summary, pending, decisions}`, with null for options
    or a schema that the question does not have. It is set when the question is asked.
    """
    first_question_id: NotRequired[str]
    """The id under which the question was first asked; left out unless it was changed while it
    was open.
    """
    ended_at: NotRequired[str]
    """When the packet ended before an answer; otherwise left out."""


HitlSchema = TypedDict(
    "HitlSchema",
    {
        "$schema": "NotRequired[str]",
        "type": 'Literal["object"]',
        "title": "NotRequired[str]",
        "description": "NotRequired[str]",
        "properties": "dict[str, HitlSchemaProperties]",
        "required": "NotRequired[list[str]]",
        "additionalProperties": "NotRequired[bool]",
    },
)


class HitlSchemaProperties(TypedDict):
    type: NotRequired[Type]
    """The type of the value, `array` for several choices; that of the choices if left out."""
    title: NotRequired[str]
    """The name of the field; that of the property if left out."""
    description: NotRequired[str]
    """What to fill in."""
    default: NotRequired[str | float | bool | list[str | float]]
    """The value if the answer has none; forms are filled in with it."""
    enum: NotRequired[list[str | float]]
    """The possible values."""
    enumNames: NotRequired[list[str]]
    """What is shown for the values of `enum`."""
    oneOf: NotRequired[list[HitlSchemaPropertiesOneOf]]
    """The possible values with their titles."""
    items: NotRequired[HitlSchemaPropertiesItems]
    """The choices of an array."""
    minItems: NotRequired[int]
    """The minimum number of choices."""
    maxItems: NotRequired[int]
    """The maximum number of choices."""
    format: NotRequired[Format]
    """The format of a text."""
    minLength: NotRequired[int]
    """The minimum number of characters of a text."""
    maxLength: NotRequired[int]
    """The maximum number of characters of a text."""
    minimum: NotRequired[float]
    """The lowest number."""
    maximum: NotRequired[float]
    """The highest number."""


class HitlSchemaPropertiesOneOf(TypedDict):
    const: str | float
    """The value: a text or a number."""
    title: str
    """What is shown for it."""


class HitlSchemaPropertiesItems(TypedDict):
    """The choices of an array."""

    type: NotRequired[HitlSchemaPropertiesItemsType]
    """The type of the choices."""
    enum: NotRequired[list[str | float]]
    """The possible values."""
    anyOf: NotRequired[list[HitlSchemaPropertiesOneOf]]
    """The possible values with their titles."""


class HitlAskedBy(TypedDict):
    agent_id: str
    agent_name: str


class CreateRequest(TypedDict):
    parent_packet_id: NotRequired[str | None]
    """A UUID."""
    metadata: CreateRequestMetadata
    context: CreateRequestContext
    decisions: NotRequired[list[Decision] | None]
    actions: NotRequired[CreateRequestActions | None]
    dependencies: NotRequired[list[Dependency] | None]
    hitl: NotRequired[Question | None]


class CreateRequestMetadata(TypedDict):
    source_agent: SourceAgent
    target_agent: TargetAgent
    priority: NotRequired[Priority | None]
    """How urgent it is. Default: normal."""
    tags: NotRequired[list[str] | None]
    """Freeform tags, used for filtering."""


class CreateRequestContext(TypedDict):
    summary: str
    """The work so far, in natural language."""
    conversation_state: NotRequired[list[Turn] | None]
    """The conversation so far."""
    artifacts: NotRequired[list[Artifact] | None]
    """Named values to hand on."""
    custom: NotRequired[dict[str, Any] | None]
    """Framework-specific or user-defined fields."""


class CreateRequestActions(TypedDict):
    pending: NotRequired[list[PendingAction] | None]
    completed: NotRequired[list[CompletedAction] | None]
    failed: NotRequired[list[FailedAction] | None]


class ChainRequest(TypedDict):
    metadata: CreateRequestMetadata
    context: CreateRequestContext
    decisions: NotRequired[list[Decision] | None]
    actions: NotRequired[CreateRequestActions | None]
    dependencies: NotRequired[list[Dependency] | None]
    hitl: NotRequired[Question | None]


class PatchRequest(TypedDict):
    status: NotRequired[Status]
    """The status to move to."""
    metadata: NotRequired[PatchRequestMetadata]
    context: NotRequired[PatchRequestContext]
    decisions: NotRequired[list[PatchRequestDecisions]]
    actions: NotRequired[PatchRequestActions]
    dependencies: NotRequired[list[PatchRequestDependencies]]
    hitl: NotRequired[PatchRequestHitl | None]


class PatchRequestMetadata(TypedDict):
    target_agent: NotRequired[TargetAgent]
    priority: NotRequired[Priority]
    """How urgent it is."""
    tags: NotRequired[list[str]]
    """Freeform tags, used for filtering."""


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
    """The question."""
    options: NotRequired[list[Any]]
    strict_options: NotRequired[bool]
    """Whether the response must be one of the options."""
    schema: NotRequired[HitlSchema]
    """A form for the answer, as JSON Schema: a flat object of texts, numbers, booleans and
    choices.
    """
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
    response: NotRequired[str | None]
    """The person's answer; the history keeps it. Required unless the question has a schema."""
    data: NotRequired[dict[str, Any] | None]
    """The fields of the question's schema. Required if it has one."""
    digest: NotRequired[str | None]
    """The `hitl.digest` of what the person was shown; 409 `STALE` if the question or what it is
    about has changed since.
    """
    responded_by: str
    """The person who answers."""
    notes: NotRequired[str | None]
    """Additional remarks."""


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


class Trial(TypedDict):
    ok: bool
    """Whether the packet would be created."""
    errors: list[TrialErrors]
    """Why it would be refused, at most 100 faults."""


class TrialErrors(TypedDict):
    code: TrialErrorsCode
    """Why it would be refused, for a program."""
    field: str | None
    """The dotted path of the invalid field; null if the fault is not about a field."""
    message: str
    """What is wrong, in a sentence."""
    detail: str
    """The same as `message`."""


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
    or a schema that the question does not have. It is set when the question is asked.
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
    question: str
    """The question."""
    options: NotRequired[list[Any] | None]
    strict_options: NotRequired[bool | None]
    """Whether the response must be one of the options."""
    schema: NotRequired[AskRequestSchema | None]
    """A form for the answer, as JSON Schema: a flat object of texts, numbers, booleans and
    choices.
    """
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
    response: NotRequired[Any]
    """The service sets it; a request may repeat what stands there."""
    data: NotRequired[Any]
    """The service sets it; a request may repeat what stands there."""
    responded_by: NotRequired[Any]
    """The service sets it; a request may repeat what stands there."""
    responded_at: NotRequired[Any]
    """The service sets it; a request may repeat what stands there."""
    notes: NotRequired[Any]
    """The service sets it; a request may repeat what stands there."""


AskRequestSchema = TypedDict(
    "AskRequestSchema",
    {
        "$schema": "NotRequired[str | None]",
        "type": 'Literal["object"]',
        "title": "NotRequired[str | None]",
        "description": "NotRequired[str | None]",
        "properties": "dict[str, HitlSchemaProperties]",
        "required": "NotRequired[list[str] | None]",
        "additionalProperties": "NotRequired[bool | None]",
    },
)


class Question(TypedDict):
    """A checkpoint for a human."""

    required: bool
    """Whether a person must answer before the packet can be completed."""
    reason: str
    """Why a person is asked."""
    question: str
    """The question."""
    options: NotRequired[list[Any]]
    strict_options: NotRequired[bool]
    """Whether the response must be one of the options."""
    schema: NotRequired[HitlSchema]
    """A form for the answer, as JSON Schema: a flat object of texts, numbers, booleans and
    choices.
    """
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
    responded_at: str
    """When the question was answered."""
    notes: str | None


class AnswerLink(TypedDict):
    id: str
    """A UUID."""
    packet_id: str
    """A UUID."""
    responder: str | None
    """The person in whose name it answers; null if the person enters a name."""
    status: AnswerLinkStatus
    """`open`: it can be used. `answered`: by this link. `closed`: the question was answered in
    another way. `expired`: also if the question was withdrawn.
    """
    created_at: str
    """When it was made."""
    expires_at: str
    """When it expires."""


class NewAnswerLink(TypedDict):
    id: str
    """A UUID."""
    url: str
    """The address of the page. It is never shown again, and anyone who has it can answer."""
    responder: str | None
    """The person in whose name it answers; null if the person enters a name."""
    expires_at: str
    """When it expires."""


class AnswerLinkRequest(TypedDict):
    responder: NotRequired[str | None]
    """The person in whose name the link answers. If left out, the person enters a name."""
    expires_in: NotRequired[int | None]
    """How long the link is valid, in seconds. Default: 86400."""


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


class BatchRefused(TypedDict):
    """The error body, with an entry in `errors` for each packet of the batch."""

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
    limit: NotRequired[FailureLimit]
    """The limit that is used up, with 429."""
    created: list[Packet]
    errors: list[BatchRefusedErrors]


class BatchRefusedErrors(TypedDict):
    index: int
    """The index of the packet in the request, from 0."""
    error: str
    code: str
    limit: NotRequired[FailureLimit]
    """The limit that is used up, with 429."""
    errors: NotRequired[list[BatchRefusedErrorsErrors]]
    """All faults, if validation found several; with `CONTRACT_VIOLATION` always, at most 100."""
    contract: NotRequired[BatchRefusedErrorsContract]
    """The contract of the target agent, with `CONTRACT_VIOLATION`."""
    field: str | None


class BatchRefusedErrorsErrors(TypedDict):
    field: str
    """The dotted path in the request."""
    detail: str
    message: NotRequired[str]
    """The same as `detail`, for `CONTRACT_VIOLATION`."""


class BatchRefusedErrorsContract(TypedDict):
    """The contract of the target agent, with `CONTRACT_VIOLATION`."""

    agent_id: str
    version: int
    description: str | None


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


class Webhook(TypedDict):
    id: str
    """A UUID."""
    url: str
    """Where deliveries go."""
    events: list[Events]
    """The event types it is subscribed to."""
    active: bool
    """Whether events are sent to it."""
    disabled_reason: Literal["gone", "failing"] | None
    """Why the service disabled it; null when it did not."""
    created_at: str
    """When it was registered."""


class WebhookRequest(TypedDict):
    url: str
    """An https URL with a public address, without credentials or a fragment."""
    events: NotRequired[list[Events] | None]
    """The event types to subscribe to; all eight if left out."""
    secret: str
    """Signs every delivery. It is never shown. Its UTF-8 bytes are the key of
    `X-SERVICE-Signature`. They are also the key of the signature of Standard Webhooks, unless
    the secret is `whsec_` followed by that key, 24 to 64 bytes, in base64.
    """


class WebhookPatch(TypedDict):
    url: NotRequired[str]
    """An https URL with a public address, without credentials or a fragment."""
    events: NotRequired[list[Events]]
    """The event types to subscribe to."""
    active: NotRequired[bool]
    """Whether events are sent to it."""
    secret: NotRequired[str]
    """The new secret. For a day, deliveries carry a signature by the old secret as well."""


class Delivery(TypedDict):
    id: str
    """A UUID."""
    webhook_id: str
    """A UUID."""
    packet_id: str | None
    """The packet of the event; null for a test delivery."""
    event_type: str
    """A webhook event type, or `ping`."""
    status: DeliveryStatus
    """The status of the delivery."""
    attempts: int
    """How many attempts were made."""
    last_error: Error | None
    """Why the last attempt failed."""
    last_status_code: int | None
    """The receiver's last HTTP status; null when it sent none."""
    next_retry_at: str | None
    delivered_at: str | None
    created_at: str
    """When the event happened."""
    updated_at: str
    """When the delivery last changed."""


class DeliveryDetail(TypedDict):
    id: str
    """A UUID."""
    webhook_id: str
    """A UUID."""
    packet_id: str | None
    """The packet of the event; null for a test delivery."""
    event_type: str
    """A webhook event type, or `ping`."""
    status: DeliveryStatus
    """The status of the delivery."""
    attempts: int
    """How many attempts were made."""
    last_error: Error | None
    """Why the last attempt failed."""
    last_status_code: int | None
    """The receiver's last HTTP status; null when it sent none."""
    next_retry_at: str | None
    delivered_at: str | None
    created_at: str
    """When the event happened."""
    updated_at: str
    """When the delivery last changed."""
    event_id: str
    """The id of the event, which every attempt sends as `webhook-id`."""
    body: str | None
    """The exact bytes that every attempt signs and sends; null for a push notification, which is
    made when it is sent.
    """


class ReplayedDelivery(TypedDict):
    id: str
    """A UUID."""
    webhook_id: str
    """A UUID."""
    packet_id: str | None
    """The packet of the event; null for a test delivery."""
    event_type: str
    """A webhook event type, or `ping`."""
    status: DeliveryStatus
    """The status of the delivery."""
    attempts: int
    """How many attempts were made."""
    last_error: Error | None
    """Why the last attempt failed."""
    last_status_code: int | None
    """The receiver's last HTTP status; null when it sent none."""
    next_retry_at: str | None
    delivered_at: str | None
    created_at: str
    """When the event happened."""
    updated_at: str
    """When the delivery last changed."""
    delivery_id: str
    """A UUID."""
    replayed: bool
    """Always true."""


class RetryRequest(TypedDict):
    webhook_id: NotRequired[str | None]
    """Only deliveries to this webhook."""
    force: NotRequired[bool | None]
    """Whether to include deliveries that are not yet due. Default: false."""
    since: NotRequired[str | None]
    """Only events at or after this moment. A date or date-time of ISO 8601."""
    until: NotRequired[str | None]
    """Only events at or before this moment. A date or date-time of ISO 8601."""


class Retried(TypedDict):
    retried: int
    """How many deliveries are retried."""
    skipped: int
    """How many were skipped because their webhook is inactive."""
    remaining: int
    """How many more are due, beyond the 1,000 of one call."""


class Channel(TypedDict):
    id: str
    """A UUID."""
    kind: Literal["email", "slack"]
    """`email` or `slack`."""
    target: str
    """The mail address; of a Slack URL, which is a secret, the origin and the last four
    characters.
    """
    name: str | None
    """What it is called."""
    events: list[ChannelEvents]
    """The events it sends: `asked` for a new question, `reminded` for its reminder, `answered`
    for its answer.
    """
    responder: str | None
    """The person whose questions it gets (`hitl.responder`), and in whose name its answer links
    answer. Null: all questions; the person enters a name.
    """
    links: bool
    """Whether its messages have answer links: they do if the key that set its target or
    responder may answer. The links end when that key is revoked.
    """
    active: bool
    """Whether messages are sent to it."""
    disabled_reason: Literal["gone", "failing"] | None
    """Why the service disabled it; null when it did not."""
    created_at: str
    """When it was created."""
    warnings: NotRequired[list[str]]
    """Says where its links lead if `SERVICE_PUBLIC_URL` is not set; otherwise absent."""


class ChannelRequest(TypedDict):
    kind: Literal["email", "slack"]
    """`email` or `slack`."""
    target: str
    """A mail address, or the https URL of one of Slack's incoming webhooks."""
    name: NotRequired[str | None]
    """What it is called."""
    events: NotRequired[list[ChannelEvents] | None]
    """The events it sends: `asked` for a new question, `reminded` for its reminder, `answered`
    for its answer. Default: asked,reminded.
    """
    responder: NotRequired[str | None]
    """The person whose questions it gets (`hitl.responder`), and in whose name its answer links
    answer. If left out: all questions.
    """


class ChannelPatch(TypedDict):
    target: NotRequired[str]
    """A mail address, or the https URL of one of Slack's incoming webhooks."""
    name: NotRequired[str | None]
    events: NotRequired[list[ChannelEvents]]
    """The events it sends: `asked` for a new question, `reminded` for its reminder, `answered`
    for its answer.
    """
    responder: NotRequired[str | None]
    active: NotRequired[bool]
    """Whether messages are sent to it."""


class ChannelDelivery(TypedDict):
    id: str
    """A UUID."""
    channel_id: str
    """A UUID."""
    event_type: str
    """The event that it sends: `asked`, `reminded`, `answered` or `test`."""
    packet_id: str | None
    """The packet of the event; null for a test delivery."""
    status: DeliveryStatus
    """The status of the delivery."""
    attempts: int
    """How many attempts were made."""
    last_error: Error | None
    """Why the last attempt failed."""
    last_status_code: int | None
    """The receiver's last HTTP status; null when it sent none."""
    next_retry_at: str | None
    delivered_at: str | None
    created_at: str
    """When the event happened."""
    updated_at: str
    """When the delivery last changed."""


class Contract(TypedDict):
    agent_id: str
    """The id of the agent."""
    version: int
    """The number of the version. Each change increments it, also after a removal."""
    schema: dict[str, Any]
    """A JSON Schema (2020-12) for `{context, decisions, actions, dependencies, metadata}` of the
    create request as it is sent: at most 32 KiB, 12 schemas deep, 500 keywords. `$ref` points
    into the document itself; patterns run in linear time (RE2).
    """
    description: str | None
    """What the agent needs, in words for those that hand over to it."""
    examples: list[dict[str, Any]]
    """Packets that satisfy the schema, at most 32 KiB together."""
    created_at: str
    """When it was first published, or published again after a removal."""
    updated_at: str
    """When its version was published."""


class ContractRequest(TypedDict):
    schema: dict[str, Any]
    """A JSON Schema (2020-12) for `{context, decisions, actions, dependencies, metadata}` of the
    create request as it is sent: at most 32 KiB, 12 schemas deep, 500 keywords. `$ref` points
    into the document itself; patterns run in linear time (RE2).
    """
    description: NotRequired[str | None]
    """What the agent needs, in words for those that hand over to it."""
    examples: NotRequired[list[dict[str, Any]] | None]
    """Packets that satisfy the schema, at most 32 KiB together."""


class ContractViolation(TypedDict):
    """The body of an error of a request that creates packets."""

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
    errors: NotRequired[list[BatchRefusedErrorsErrors]]
    """All faults, if validation found several; with `CONTRACT_VIOLATION` always, at most 100."""
    limit: NotRequired[FailureLimit]
    """The limit that is used up, with 429."""
    contract: NotRequired[BatchRefusedErrorsContract]
    """The contract of the target agent, with `CONTRACT_VIOLATION`."""


class Policy(TypedDict):
    name: str
    """The name of the policy."""
    version: int
    """The number of the version. Each change increments it, also after a removal."""
    description: str | None
    order: int
    match: PolicyMatch
    rules: list[PolicyRules]
    """The first rule that fits decides; if none fits, anybody who may answer is asked."""
    mode: Literal["enforce", "shadow"]
    remember: PolicyRemember | None
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


class PolicyRemember(TypedDict):
    scope: Literal["call", "tool"]
    max_seconds: int


class PolicyRequest(TypedDict):
    description: NotRequired[str | None]
    """What the policy is for."""
    order: NotRequired[int | None]
    """Policies are tried by this number, 0 if left out, then by name."""
    match: NotRequired[PolicyRequestMatch | None]
    """Which actions it judges; what is left out or empty fits everything."""
    rules: list[PolicyRequestRules]
    """The first rule that fits decides; if none fits, anybody who may answer is asked."""
    mode: NotRequired[Literal["enforce", "shadow"] | None]
    """`shadow`: it decides nothing; what it would have decided is recorded. `enforce` if left
    out.
    """
    remember: NotRequired[PolicyRequestRemember | None]
    """Whether an approval may stand for later actions. Left out: it may not."""


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
    """Whether an approval may stand for later actions. Left out: it may not."""

    scope: Literal["call", "tool"]
    """For the same arguments, or for any arguments of the tool."""
    max_seconds: int
    """For how long."""


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


class Stats(TypedDict):
    since: str
    """The start of the hour that contains the requested `since`."""
    until: str
    """Now."""
    questions: StatsQuestions
    work: StatsWork
    deliveries: StatsDeliveries
    hours: list[StatsHour]
    """Each hour since `since`, oldest first."""


class StatsQuestions(TypedDict):
    open: int
    """Open questions."""
    oldest_asked_at: str | None
    """When the oldest open question was asked; null without one."""
    answered: int
    """Questions answered since `since`."""
    median_answer_seconds: int | None
    """The median time from a question to its answer, of those answered since `since`, within ten
    percent; null without one.
    """


class StatsWork(TypedDict):
    waiting: int
    """Packets in `created`, which nobody holds."""
    held: int
    """Packets in `claimed` or `in_progress`."""
    oldest_waiting_at: str | None
    """When the oldest packet in `created` was created; null without one."""
    created: int
    """Packets created since `since`."""
    completed: int
    """Packets completed since `since`."""
    failed: int
    """Packets that failed since `since`."""
    expired: int
    """Packets that expired, or were deleted before they were finished, since `since`."""


class StatsDeliveries(TypedDict):
    waiting: int
    """Deliveries to webhooks and channels that are to be attempted, counted up to 10000."""
    failing: int
    """Webhooks and channels whose last attempt failed."""
    dead_letters: int
    """Deliveries that failed for good and were neither replayed nor removed, counted up to
    10000.
    """


class StatsHour(TypedDict):
    hour: str
    """Its start."""
    created: int
    """Packets created."""
    completed: int
    """Packets completed."""
    failed: int
    """Packets that failed."""
    expired: int
    """Packets that expired or were deleted before they were finished."""
    answered: int
    """Questions answered."""
    waiting: int
    """Packets in `created`."""
    held: int
    """Packets in `claimed` or `in_progress`."""
    asked: int
    """Packets in `awaiting_human`."""


class AuditEntry(TypedDict):
    id: str
    """A UUID."""
    packet_id: str | None
    actor: str
    """Who did it."""
    key_id: str | None
    """The API key that was used; null when the service itself acted."""
    action: str
    """What happened."""
    resource: str
    """The kind of resource."""
    details: dict[str, Any]
    """What was done; empty once the packet is erased."""
    timestamp: str
    """When it happened."""


class ApiKey(TypedDict):
    id: str
    """A UUID."""
    name: str
    tier: Tier
    """The tier."""
    prefix: str
    """The first eight characters of the key."""
    admin: bool
    """Whether it may manage tenants."""
    created_at: str
    """When it was created."""
    expires_at: str | None
    """When a rotated key expires; null for a key that was not rotated."""
    scopes: list[Scopes]
    """What it may do."""
    agents: list[str] | None
    """The ids of the agents that it may act as; null for any."""
    responder: str | None
    """The person in whose name it answers; null for any."""


class NewApiKey(TypedDict):
    id: str
    """A UUID."""
    name: str
    tier: Tier
    """The tier."""
    prefix: str
    """The first eight characters of the key."""
    admin: bool
    """Whether it may manage tenants."""
    created_at: str
    """When it was created."""
    expires_at: str | None
    """When a rotated key expires; null for a key that was not rotated."""
    scopes: list[Scopes]
    """What it may do."""
    agents: list[str] | None
    """The ids of the agents that it may act as; null for any."""
    responder: str | None
    """The person in whose name it answers; null for any."""
    key: str
    """The key itself. It is never shown again."""


class OwnKey(TypedDict):
    id: str
    """A UUID."""
    name: str
    tier: Tier
    """The tier."""
    prefix: str
    """The first eight characters of the key."""
    admin: bool
    """Whether it may manage tenants."""
    created_at: str
    """When it was created."""
    expires_at: str | None
    """When a rotated key expires; null for a key that was not rotated."""
    scopes: list[Scopes]
    """What it may do."""
    agents: list[str] | None
    """The ids of the agents that it may act as; null for any."""
    responder: str | None
    """The person in whose name it answers; null for any."""
    tenant: OwnKeyTenant
    """The tenant of the key."""


class OwnKeyTenant(TypedDict):
    """The tenant of the key."""

    id: str
    """A UUID."""
    name: str
    tier: Tier
    """The tier."""


class KeyRequest(TypedDict):
    name: str
    """What the key is for."""
    tier: NotRequired[Tier | None]
    """At most the tenant's tier, which is the default."""
    admin: NotRequired[bool | None]
    """Whether to create an admin key; needs an admin key."""
    tenant_id: NotRequired[str | None]
    """The tenant to create the key for; needs an admin key."""
    scopes: NotRequired[list[Scopes] | None]
    """What the key may do, at most what the creating key may do. By default everything that the
    creating key may do, except act as an admin key.
    """
    agents: NotRequired[list[str] | None]
    """The agents that the key may act as: source agent, claimant and `X-Agent-Id`. Any if left
    out.
    """
    responder: NotRequired[str | None]
    """The person in whose name the key answers: `responded_by` must be this. Any if left out."""


class RotateRequest(TypedDict):
    overlap_seconds: NotRequired[int | None]
    """How long the old key remains valid; an hour if left out."""


class Tenant(TypedDict):
    id: str
    """A UUID."""
    name: str
    tier: Tier
    """The tier."""
    handoffs_per_day: int | None
    """The maximum number of packets per UTC day; null for the tier's default."""
    max_api_keys: int
    """The maximum number of API keys it may have; unless set, 1, 5 or 25 by tier."""
    created_at: str
    """When it was created."""
    updated_at: str
    """When it last changed."""
    deleted_at: str | None


class TenantRequest(TypedDict):
    name: str
    """The name of the tenant."""
    tier: NotRequired[Tier | None]
    """The tier. Default: free."""
    handoffs_per_day: NotRequired[int | None]
    """The maximum number of packets per UTC day; null for the tier's default."""
    max_api_keys: NotRequired[int | None]
    """The maximum number of API keys it may have; 1, 5 or 25 by tier if left out."""


class TenantPatch(TypedDict):
    name: NotRequired[str]
    """The name of the tenant."""
    tier: NotRequired[Tier]
    """The tier."""
    handoffs_per_day: NotRequired[int | None]
    """The maximum number of packets per UTC day; null for the tier's default."""
    max_api_keys: NotRequired[int]
    """The maximum number of API keys it may have. Until it is set, it follows the tier."""


class JsonRpcFailure(TypedDict):
    """A fault of the protocol, as an error of JSON-RPC 2.0."""

    jsonrpc: str
    id: NotRequired[str | float | None]
    """The id of the request; null if it is unknown."""
    error: JsonRpcFailureError


class JsonRpcFailureError(TypedDict):
    code: int
    """The code of JSON-RPC, MCP or A2A."""
    message: str
    """What is wrong, in a sentence."""
    data: NotRequired[Any]
    """Details, as the protocol defines them; `code` is the code of the API."""


class A2aFailure(TypedDict):
    """An error of A2A over HTTP+JSON, in the form of AIP-193."""

    error: A2aFailureError


class A2aFailureError(TypedDict):
    code: int
    """The HTTP status."""
    status: str
    """The name of the status, as in `google.rpc.Code`."""
    message: str
    """What is wrong, in a sentence."""
    details: list[Any]
    """A `google.rpc.ErrorInfo` whose `reason` is the error of A2A, if it is one."""


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
    wait_seconds: NotRequired[int | None]
    """How long to wait if no packet is available. Default: 0."""


class RenewLeaseRequest(TypedDict):
    lease_seconds: NotRequired[int | None]
    """The duration of the lease from now; the previous duration if left out."""


class RenewLeaseAnswer(TypedDict):
    lease: PacketLease


class ListAgentsAnswer(TypedDict):
    agents: list[ListAgentsAnswerAgents]
    total: int
    limit: int
    offset: int


class ListAgentsAnswerAgents(TypedDict):
    agent_id: str
    last_seen_at: str
    """When a request last named it: as source, as claimant or in X-Agent-Id."""
    holding: int
    """How many open packets it holds."""
    waiting: int
    """How many packets in `created` have it as their target."""
    contract: int | None
    """The version of its contract; null if it has none."""


class ListContractsAnswer(TypedDict):
    contracts: list[Contract]
    next_cursor: str | None


class ListPoliciesAnswer(TypedDict):
    policies: list[Policy]
    next_cursor: str | None


class TryPoliciesAnswer(TypedDict):
    policy: str | None
    """The policy that decides; null if none fits."""
    rule: int | None
    """The number of its rule, from 1; null if none fits."""
    then: PolicyRulesThen | None
    """What it decides; null: anybody who may answer is asked. A rule approves only for an agent
    that the asking key is bound to.
    """
    skipped: list[TryPoliciesAnswerSkipped]
    """The policies and rules before it, and where they do not fit."""


class TryPoliciesAnswerSkipped(TypedDict):
    policy: str
    rule: int | None
    """The number of the rule, from 1; null if the policy does not match."""
    path: str
    """The part of `match`, or of the action, that does not fit."""


class ListGroupsAnswer(TypedDict):
    groups: list[Group]
    next_cursor: str | None


class ListDelegationsAnswer(TypedDict):
    delegations: list[Delegation]
    next_cursor: str | None


class ListAuditAnswer(TypedDict):
    entries: list[AuditEntry]
    total: int
    limit: int
    offset: int
    total_is: Literal["exact", "at_least"]
    """Whether `total` is the number of entries or a lower bound."""


class HealthAnswer(TypedDict):
    status: str


class A2aRequest(TypedDict):
    """A request of JSON-RPC 2.0."""

    jsonrpc: NotRequired[Any]
    id: NotRequired[Any]
    method: NotRequired[Any]
    params: NotRequired[Any]


class A2aSendMessageRequest(TypedDict):
    """The request of `SendMessage`."""

    message: NotRequired[Any]
    """As A2A defines it."""


class A2aCreateTaskPushNotificationConfigRequest(TypedDict):
    """The request of `CreateTaskPushNotificationConfig`."""

    id: NotRequired[Any]
    """As A2A defines it."""
    url: NotRequired[Any]
    """As A2A defines it."""
    token: NotRequired[Any]
    """As A2A defines it."""


class McpRequest(TypedDict):
    """A message of JSON-RPC 2.0."""

    jsonrpc: NotRequired[str]
    id: NotRequired[Any]
    method: NotRequired[str]
    params: NotRequired[Any]
