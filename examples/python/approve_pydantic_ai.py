"""Pydantic AI: a deferred tool call ends the run; people decide, and the run goes on with the stored messages."""

import os
from pathlib import Path

from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    ModelMessagesTypeAdapter,
    RunContext,
    ToolApproved,
    ToolDenied,
)
from scripted import pydantic_model, refund_order

from baton_client import Handoff

client = Handoff(os.environ["SERVICE_URL"], os.environ["SERVICE_API_KEY"], "refunds")
state_file = Path(os.environ["STATE"])
agent = Agent(pydantic_model(), output_type=[str, DeferredToolRequests])


# docs: pydantic-ai
@agent.tool(requires_approval=True)
@client.requires_approval()
def refund(context: RunContext, order: str, amount: int) -> str:
    """Refunds an order."""
    return refund_order(order, amount)


def decided(requests: DeferredToolRequests) -> DeferredToolResults:
    results = DeferredToolResults()
    for call in requests.approvals:
        found = client.approve(call.tool_name, call.args_as_dict(), call_id=call.tool_call_id)
        yes, no = ToolApproved(override_args=found.arguments), ToolDenied(found.message or "Rejected")
        results.approvals[call.tool_call_id] = yes if found.approved else no
    return results


# docs: end


def main() -> None:
    if not state_file.exists():
        state_file.write_bytes(agent.run_sync("Refund ORD-4711").all_messages_json())
    messages = ModelMessagesTypeAdapter.validate_json(state_file.read_bytes())
    decisions = decided(pending(messages))
    if os.environ.get("DIES"):
        os._exit(9)
    result = agent.run_sync(message_history=messages, deferred_tool_results=decisions)
    print(result.output)


def pending(messages: list) -> DeferredToolRequests:
    return DeferredToolRequests(approvals=[part for part in messages[-1].parts if part.part_kind == "tool-call"])


main()
