"""A LangGraph agent that takes packets and asks people through Baton. An `interrupt` becomes a question.

    .venv/bin/pip install ./packages/python langgraph langgraph-checkpoint-sqlite
    SERVICE_URL=http://localhost:8080 SERVICE_API_KEY=... python examples/python/langgraph_worker.py

The graph is saved in the file CHECKPOINTS under the packet's id, so another process goes on with it after the answer.
"""

import os
from typing import Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from baton_client import Context, Handoff


class State(TypedDict, total=False):
    summary: str
    draft: str
    result: str


def draft(state: State) -> State:
    # A model would write this.
    print("drafted", flush=True)
    return {"draft": f"Refund for: {state['summary']}"}


def approve(state: State) -> State:
    answer = interrupt({"question": f"{state['draft']}?", "options": ["Approve", "Refuse"]})
    return {"result": "refunded" if answer == "Approve" else "refused"}


graph = StateGraph(State)
graph.add_node("draft_refund", draft)
graph.add_node("approve", approve)
graph.add_edge(START, "draft_refund")
graph.add_edge("draft_refund", "approve")
graph.add_edge("approve", END)


def handle(ctx: Context) -> dict[str, Any]:
    with SqliteSaver.from_conn_string(os.environ.get("CHECKPOINTS", "checkpoints.db")) as checkpoints:
        agent = graph.compile(checkpointer=checkpoints)
        config: Any = {"configurable": {"thread_id": ctx.packet["id"]}}
        # A graph that an earlier process began waits at its interrupt.
        if not agent.get_state(config).interrupts:
            agent.invoke({"summary": ctx.packet["context"]["summary"]}, config)
        while interrupts := agent.get_state(config).interrupts:
            asked = interrupts[0].value
            # The key is that of the interrupt, so that a graph which goes on in another process asks the same question.
            answer = ctx.ask(asked["question"], key=interrupts[0].id, options=asked["options"])
            agent.invoke(Command(resume=answer.get("response")), config)
        return {"context": {"custom": agent.get_state(config).values}}


if __name__ == "__main__":
    client = Handoff(os.environ.get("SERVICE_URL", "http://localhost:8080"), os.environ["SERVICE_API_KEY"])
    client.work(os.environ.get("AGENT", "resolver"), handle, lease_seconds=int(os.environ.get("LEASE_SECONDS", "60")))
