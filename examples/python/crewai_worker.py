"""A CrewAI crew that takes packets. The human input of its task is asked through Baton, not at the terminal.

    .venv/bin/pip install ./packages/python crewai
    SERVICE_URL=http://localhost:8080 SERVICE_API_KEY=... python examples/python/crewai_worker.py

With OPENAI_API_KEY it uses a model of OpenAI; without, a scripted one that repeats what it was told.
"""

import os
from typing import Any

from crewai import Agent, BaseLLM, Crew, Task
from crewai.core.providers.human_input import set_provider

from baton_client import Context, Handoff


class AskThroughBaton:
    """Asks the person about each result, until the person accepts it. CrewAI calls it for `human_input=True`."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx

    def setup_messages(self, context: Any) -> bool:
        return False

    def post_setup_messages(self, context: Any) -> None:
        pass

    def handle_feedback(self, formatted_answer: Any, context: Any) -> Any:
        while context.ask_for_human_input:
            answer = self.ctx.ask(f"Answer `ok`, or say what should change: {formatted_answer.output}")
            feedback = answer.get("response") or ""
            if feedback.strip().lower() == "ok":
                context.ask_for_human_input = False
            else:
                context.messages.append(context._format_feedback_message(feedback))
                formatted_answer = context._invoke_loop()
        return formatted_answer

    async def handle_feedback_async(self, formatted_answer: Any, context: Any) -> Any:
        raise NotImplementedError("This crew runs synchronously.")


class Scripted(BaseLLM):
    """Writes a draft; after feedback, a draft that contains it."""

    def call(self, messages: Any, *_: Any, **__: Any) -> str:
        said = [message["content"] for message in messages if message["role"] == "user"]
        return f"Thought: I know it.\nFinal Answer: Refund 59.90{'' if len(said) < 2 else f' ({said[-1].strip()})'}"


def handle(ctx: Context) -> dict[str, Any]:
    set_provider(AskThroughBaton(ctx))
    model: Any = {} if "OPENAI_API_KEY" in os.environ else {"llm": Scripted(model="scripted")}
    desk = Agent(role="Resolution desk", goal="Settle the case", backstory="You write one sentence.", **model)
    task = Task(
        description=ctx.packet["context"]["summary"],
        expected_output="What is done, in one sentence.",
        agent=desk,
        human_input=True,
    )
    return {"context": {"custom": {"result": str(Crew(agents=[desk], tasks=[task]).kickoff())}}}


if __name__ == "__main__":
    client = Handoff(os.environ.get("SERVICE_URL", "http://localhost:8080"), os.environ["SERVICE_API_KEY"])
    client.work(os.environ.get("AGENT", "resolver"), handle, lease_seconds=60)
