# Written by `node scripts/python-client.ts` from the API description; change that, not this file.
"""Bodies and answers of the handoff service."""

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
    "CONTRACT_VIOLATION",
    "NOT_AN_APPROVER",
    "SIGN_IN_REQUIRED",
    "ALREADY_APPROVED",
    "ALREADY_EXECUTED",
    "APPROVAL_EXPIRED",
    "CALL_CHANGED",
    "DIGEST_MISMATCH",
    "NOT_APPROVED",
    "NOT_YET",
    "LEASE_LOST",
    "LOOP_GUARD",
    "QUESTION_OPEN",
    "ANSWERED",
    "KEY_CHANGED",
    "STALE",
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
Method = Literal["sign_in", "key", "link", "token", "typed"]
HitlDecisionDecision = Literal["approve", "edit", "reject", "respond"]
TrialErrorsCode = Literal[
    "VALIDATION_ERROR",
    "CONTRACT_VIOLATION",
    "LOOP_GUARD",
    "CALL_CHANGED",
    "RATE_LIMITED",
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
Tier = Literal["free", "pro", "business"]
Scopes = Literal["read", "work", "respond", "manage", "erase"]


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
    trace: NotRequired[PacketMetadataTrace]
    """The trace of the request that created the packet; absent if that had none. Set by the
    service.
    """
    schedule: NotRequired[PacketMetadataSchedule]
    """The schedule that made the packet; absent otherwise. Set by the service."""
    source_agent: SourceAgent
    target_agent: TargetAgent
    priority: Priority
    """How urgent it is."""
    tags: list[str]
    """Freeform tags, used for filtering."""
    subjects: NotRequired[list[str]]
    """Opaque ids of the people whose data the packet holds, by which it can be found and erased."""
    created_at: str
    """When the packet was created."""


class PacketMetadataTrace(TypedDict):
    """The trace of the request that created the packet; absent if that had none. Set by the
    service.
    """

    traceparent: str
    """The parent for the work on the packet."""
    tracestate: NotRequired[str]
    """What tracing systems add."""


class PacketMetadataSchedule(TypedDict):
    """The schedule that made the packet; absent otherwise. Set by the service."""

    name: str
    """The name of the schedule."""
    at: str
    """The time for which it made the packet."""


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
    answered_by: NotRequired[HitlAnsweredBy]
    """Who answered. The name is verified by a sign-in, by a key with that `responder`, by a link
    with that `responder` that a channel sent or that was made with the scope `manage` or by a
    key of that person, and by a token of that person. Any other name is only typed.
    """
    data: NotRequired[dict[str, Any]]
    """The answer to a question with a schema."""
    partial: NotRequired[bool]
    """True if the page left out text of the packet and the person did not open it; otherwise
    left out.
    """
    digest: NotRequired[str]
    """The SHA-256, in hex, of what a person is shown: the canonical JSON (RFC 8785) of
    `{question, reason, options, schema, summary, pending, decisions}`, with null for options
    or a schema that the question does not have, and with `action` where it has one. It is set
    when the question is asked.
    """
    first_question_id: NotRequired[str]
    """The id under which the question was first asked; left out unless it was changed while it
    was open.
    """
    ended_at: NotRequired[str]
    """When the packet ended before an answer; otherwise left out."""
    approvals: NotRequired[list[HitlApprovals]]
    """Who has approved the action."""
    step: NotRequired[HitlStep | None]
    """The step of the policy that is open; null without a policy that asks."""
    remember: NotRequired[HitlRemember]
    """What who approves may let stand for later (`remember` in an answer); left out where
    nothing may.
    """
    verified_only: NotRequired[bool]
    """True while a policy asks, also where it asks anybody: only a verified name counts that is
    not the asker's, and no token. Otherwise left out; `require_verified` then says whether a
    verified name is needed.
    """
    shadow: NotRequired[list[HitlShadow]]
    """What policies would have decided that are only tried."""
    edited: NotRequired[HitlEdited]
    decision: NotRequired[HitlDecision]


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


class HitlAnsweredBy(TypedDict):
    """Who answered. The name is verified by a sign-in, by a key with that `responder`, by a link
    with that `responder` that a channel sent or that was made with the scope `manage` or by a
    key of that person, and by a token of that person. Any other name is only typed.
    """

    name: str
    verified: bool
    """Whether it is known that it was this person."""
    method: Method
    """How the name is known; `typed`: somebody entered it."""
    subject: NotRequired[str]
    """The identity provider's id of the person."""
    key_id: NotRequired[str]
    """The key that sent the answer."""
    link_id: NotRequired[str]
    """The answer link that was used."""


HitlApprovals = TypedDict(
    "HitlApprovals",
    {
        "step": "int",
        "name": "str",
        "for": "str | None",
        "decision": 'Literal["approve", "edit"]',
        "at": "str",
        "void": "bool",
        "verified": "bool",
        "method": "Method",
        "key_id": "str | None",
        "partial": "NotRequired[bool]",
        "standing_id": "NotRequired[str]",
    },
)


HitlStep = TypedDict(
    "HitlStep",
    {
        "index": "int",
        "of": "int",
        "count": "int",
        "given": "int",
        "from": "list[str]",
        "changes_at": "str | None",
    },
)


class HitlRemember(TypedDict):
    """What who approves may let stand for later (`remember` in an answer); left out where
    nothing may.
    """

    scope: Literal["call", "tool"]
    """`call`: the same call; `tool`: any call of the tool too."""
    max_seconds: int
    """How long at most."""


class HitlShadow(TypedDict):
    policy: str
    version: int
    rule: int | None
    then: dict[str, Any] | None


class HitlEdited(TypedDict):
    arguments: dict[str, Any]
    """The arguments as they would be approved now."""
    arguments_digest: str
    """The SHA-256, in hex, of the canonical JSON (RFC 8785) of the arguments."""
    name: str
    """Who changed them last."""
    at: str
    """When."""


class HitlDecision(TypedDict):
    decision: HitlDecisionDecision
    """`edit`: the approved arguments are edited ones."""
    arguments: dict[str, Any]
    """The arguments that were approved, or those that were not."""
    arguments_digest: str
    """The SHA-256, in hex, of the canonical JSON (RFC 8785) of the arguments."""
    message: str | None
    """What the person says to the agent."""
    decided_at: str
    """When it was decided."""
    valid_until: str | None
    """Until when it can be executed; null if it was not approved."""
    by: list[HitlDecisionBy]
    """Who decided; empty where a rule or the time did."""
    policy: HitlDecisionPolicy | None
    """The policy that decided or whose steps were asked; null without one."""
    standing_id: str | None
    """The standing approval that gave the last approval; null: none did."""


HitlDecisionBy = TypedDict(
    "HitlDecisionBy",
    {
        "name": "str",
        "verified": "bool",
        "method": "Method",
        "key_id": "str | None",
        "for": "str | None",
        "decision": "HitlDecisionDecision",
        "at": "str",
        "partial": "NotRequired[bool]",
    },
)


class HitlDecisionPolicy(TypedDict):
    name: str
    version: int
    rule: int | None
    """The number of the rule, from 1; null if no rule fits."""


class CreateRequest(TypedDict):
    parent_packet_id: NotRequired[str | None]
    """A UUID."""
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


class CreateRequestMetadata(TypedDict):
    source_agent: SourceAgent
    target_agent: TargetAgent
    priority: NotRequired[Priority | None]
    """How urgent it is. Default: normal."""
    tags: NotRequired[list[str] | None]
    """Freeform tags, used for filtering."""
    subjects: NotRequired[list[str] | None]
    """Opaque ids of the people whose data the packet holds, by which it can be found and erased."""


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


class CreateRequestHitl(TypedDict):
    """A checkpoint for a human."""

    required: bool
    """Whether a person must answer before the packet can be completed."""
    reason: str
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


CreateRequestHitlSchema = TypedDict(
    "CreateRequestHitlSchema",
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


class Action(TypedDict):
    """A tool call that waits for an approval."""

    tool: str
    """The tool."""
    arguments: dict[str, Any]
    """The arguments of the call: at most 64 KiB as JSON, 32 deep, without numbers that a double
    does not hold exactly as an integer.
    """
    arguments_digest: NotRequired[str]
    """The SHA-256, in hex, of the canonical JSON (RFC 8785) of the arguments. The service sets
    it; a request may repeat it.
    """
    title: NotRequired[str]
    """What the action is called, for people."""
    description: NotRequired[str]
    """What the action does, for people."""
    schema: NotRequired[dict[str, Any]]
    """A JSON Schema (2020-12) of the arguments, with the bounds of contracts; proposed and
    edited ones must satisfy it.
    """
    decisions: NotRequired[list[HitlDecisionDecision]]
    """What is offered; `approve`, `edit` and `reject` if left out. `reject` always is."""
    call_id: NotRequired[str]
    """The id of the call in the agent's framework."""
    valid_seconds: NotRequired[int]
    """How long an approval can be executed after it was given; 86,400 if left out."""


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
    sees: Literal["all", "own"]
    """Whether it sees all packets of the tenant, or its own."""
    queues: list[str] | None
    """For a key that sees its own: the target agents whose packets it also sees; else null."""


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
