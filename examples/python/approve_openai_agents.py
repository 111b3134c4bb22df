"""OpenAI Agents SDK: a tool that needs an approval interrupts the run, whose state is stored until people decide."""

import asyncio
import json
import os
from pathlib import Path

from agents import Agent, RunConfig, Runner, RunState, function_tool
from agents.tool_context import ToolContext
from scripted import agents_model, refund_order

from baton_client import AsyncHandoff

client = AsyncHandoff(os.environ["SERVICE_URL"], os.environ["SERVICE_API_KEY"], "refunds")
state_file = Path(os.environ["STATE"])


# docs: openai-agents
@function_tool(needs_approval=True, failure_error_function=None)
@client.requires_approval()
async def refund(context: ToolContext, order: str, amount: int) -> str:
    """Refunds an order."""
    return refund_order(order, amount)


async def decide(state: RunState, interruptions: list) -> None:
    for item in interruptions:
        call = item.raw_item
        found = await client.approve(call.name, json.loads(call.arguments), call_id=call.call_id)
        if found.approved:
            state.approve(item)
        else:
            state.reject(item, rejection_message=found.message)


# docs: end


async def main() -> None:
    agent = Agent(name="refunds", tools=[refund], model=agents_model())
    config = RunConfig(tracing_disabled=True)
    given = "Refund ORD-4711"
    if state_file.exists():
        given = await RunState.from_string(agent, state_file.read_text())
    result = await Runner.run(agent, given, run_config=config)
    while result.interruptions:
        state = result.to_state()
        state_file.write_text(state.to_string())
        await decide(state, result.interruptions)
        if os.environ.get("DIES"):
            os._exit(9)
        result = await Runner.run(agent, state, run_config=config)
    print(result.final_output)


asyncio.run(main())
