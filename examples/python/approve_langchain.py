"""LangChain: its middleware interrupts the agent, people decide, and the tool runs once. Started over, it goes on."""

import os
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.tools import ToolRuntime, tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command
from scripted import langchain_model, refund_order

from baton_client import Handoff

client = Handoff(os.environ["SERVICE_URL"], os.environ["SERVICE_API_KEY"], "refunds")


# docs: langchain
@tool
@client.requires_approval()
def refund(order: str, amount: int, runtime: ToolRuntime) -> str:
    """Refunds an order."""
    return refund_order(order, amount)


def decision_of(call: dict[str, Any]) -> dict[str, Any]:
    found = client.approve(call["name"], call["args"], call_id=call["id"])
    if found.decision == "edit":
        return {"type": "edit", "edited_action": {"name": call["name"], "args": found.arguments}}
    return {"type": "approve"} if found.approved else {"type": "reject", "message": found.message or "Rejected"}


# docs: end


def main() -> None:
    with SqliteSaver.from_conn_string(os.environ["STATE"]) as saver:
        ask = HumanInTheLoopMiddleware(interrupt_on={"refund": True})
        agent = create_agent(langchain_model(), [refund], middleware=[ask], checkpointer=saver)
        config: Any = {"configurable": {"thread_id": "order-4711"}}
        started = agent.get_state(config).next
        result = agent.invoke(None if started else {"messages": [("user", "Refund ORD-4711")]}, config)
        while "__interrupt__" in result:
            decisions = [decision_of(call) for call in result["messages"][-1].tool_calls]
            if os.environ.get("DIES"):
                os._exit(9)
            result = agent.invoke(Command(resume={"decisions": decisions}), config)
        print(result["messages"][-1].content)


main()
