"""An agent of the OpenAI Agents SDK that hands work to an agent elsewhere, as a tool, and uses its result.

    .venv/bin/pip install ./packages/python openai-agents
    SERVICE_URL=http://localhost:8080 SERVICE_API_KEY=... python examples/python/openai_agents.py

With OPENAI_API_KEY it uses a model of OpenAI; without, a scripted one that calls the tool once and repeats the result.
"""

import asyncio
import json
import os
import sys
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from baton_client import AsyncHandoff

client = AsyncHandoff(os.environ.get("SERVICE_URL", "http://localhost:8080"), os.environ["SERVICE_API_KEY"])


@function_tool
async def hand_over(agent_id: str, summary: str) -> str:
    """Hands work to another agent, and returns its result.

    Args:
        agent_id: the agent that takes the work.
        summary: what it needs to know.
    """
    source: Any = {"id": "frontline", "name": "Frontline agent", "framework": "openai-agents"}
    target: Any = {"id": agent_id, "name": agent_id}
    packet = await client.create_packet(
        body={"metadata": {"source_agent": source, "target_agent": target}, "context": {"summary": summary}}
    )
    while packet["status"] not in ("completed", "failed", "expired"):
        packet = await client.get_packet(packet["id"], wait_seconds=60, until="completed,failed,expired")
    return f"{packet['status']}: {packet['context']['custom'].get('result', packet['context']['summary'])}"


class Scripted(Model):
    """Calls the tool with the user's text, then answers with what the tool returned."""

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:
        items = [{"content": input}] if isinstance(input, str) else list(input)
        result = next((item["output"] for item in items if item.get("type") == "function_call_output"), None)
        if result is None:
            arguments = json.dumps({"agent_id": "resolver", "summary": items[0]["content"]})
            call = ResponseFunctionToolCall(call_id="1", name="hand_over", arguments=arguments, type="function_call")
            return ModelResponse(output=[call], usage=Usage(), response_id=None)
        text = ResponseOutputText(text=f"The resolver says {result}", type="output_text", annotations=[])
        said = ResponseOutputMessage(id="1", role="assistant", status="completed", type="message", content=[text])
        return ModelResponse(output=[said], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


async def main() -> None:
    scripted = "OPENAI_API_KEY" not in os.environ
    set_tracing_disabled(scripted)
    model: Any = {"model": Scripted()} if scripted else {}
    agent = Agent(name="Frontline", instructions="Hand refunds to `resolver`.", tools=[hand_over], **model)
    print((await Runner.run(agent, sys.argv[1] if len(sys.argv) > 1 else "Order 4711 was charged twice")).final_output)


asyncio.run(main())
