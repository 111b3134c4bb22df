"""CrewAI: the tool asks people and runs once; the task gives the call its id. Started over, the crew goes on.

    .venv/bin/pip install ./packages/python crewai

Tests run it where BATON_CREWAI names a Python that has crewai; docs/approvals.md says when it was run.
"""

import os
from typing import Any

from crewai import Agent, Crew, Task
from crewai.tools import tool
from scripted import crewai_model, refund_order

from baton_client import Handoff

client = Handoff(os.environ["SERVICE_URL"], os.environ["SERVICE_API_KEY"], "refunds")
task_id = "order-4711"


# docs: crewai
@tool
@client.requires_approval(call_id=lambda order, amount: f"{task_id}:refund")
def refund(order: str, amount: int) -> str:
    """Refunds an order."""
    return refund_order(order, amount)


# docs: end


def main() -> None:
    if os.environ.get("DIES"):
        # The tool has its decision, and dies before it runs.
        get_packet = client.get_packet

        def dying(*args: Any, **how: Any) -> Any:
            packet = get_packet(*args, **how)
            return os._exit(9) if (packet["hitl"] or {}).get("decision") else packet

        client.get_packet = dying
    model = crewai_model()
    desk = Agent(role="Refund desk", goal="Refund orders", backstory="You write.", llm=model, tools=[refund])
    task = Task(description="Refund ORD-4711", expected_output="What was done", agent=desk)
    print(Crew(agents=[desk], tasks=[task]).kickoff())


main()
