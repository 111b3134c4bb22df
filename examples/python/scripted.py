"""What the recipes of approvals share: a refund that is written down, and models that follow a script."""

import json
import os
from typing import Any

ARGUMENTS = {"order": "ORD-4711", "amount": 500}


def refund_order(order: str, amount: int) -> str:
    """The tool. What it does can't be undone."""
    with open(os.environ["LEDGER"], "a") as ledger:
        ledger.write(f"{order} {amount}\n")
    return f"refunded {amount}"


def langchain_model() -> Any:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    class Scripted(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "scripted"

        def bind_tools(self, tools: Any, **_: Any) -> Any:
            return self

        def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
            last = messages[-1]
            call = {"name": "refund", "args": ARGUMENTS, "id": "call-langchain"}
            done = last.type == "tool"
            message = AIMessage(f"The tool said: {last.content}") if done else AIMessage("", tool_calls=[call])
            return ChatResult(generations=[ChatGeneration(message=message)])

    return Scripted()


def agents_model() -> Any:
    from agents import Model, ModelResponse, Usage
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    class Scripted(Model):
        async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:
            last = input[-1] if isinstance(input, list) else {}
            if last.get("type") == "function_call_output":
                text = ResponseOutputText(text=f"The tool said: {last['output']}", type="output_text", annotations=[])
                message = ResponseOutputMessage(
                    id="m", content=[text], role="assistant", status="completed", type="message"
                )
                return ModelResponse(output=[message], usage=Usage(), response_id=None)
            call = ResponseFunctionToolCall(
                arguments=json.dumps(ARGUMENTS), call_id="call-agents", name="refund", type="function_call"
            )
            return ModelResponse(output=[call], usage=Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    return Scripted()


def pydantic_model() -> Any:
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import FunctionModel

    def answer(messages: Any, _: Any) -> ModelResponse:
        last = messages[-1].parts[-1]
        if isinstance(last, ToolReturnPart):
            return ModelResponse(parts=[TextPart(f"The tool said: {last.content}")])
        return ModelResponse(parts=[ToolCallPart("refund", ARGUMENTS, tool_call_id="call-pydantic")])

    return FunctionModel(answer)


def crewai_model() -> Any:
    from crewai import BaseLLM

    class Scripted(BaseLLM):
        def call(self, messages: Any, *_: Any, **__: Any) -> str:
            # The first two say how to use tools, and what to do.
            said = " ".join(str(message.get("content")) for message in messages[2:])
            if "Observation:" in said:
                # What CrewAI says about an error names its format again.
                return f"Thought: I know it.\nFinal Answer: The tool said: {said.replace('Final Answer:', '')}"
            return f"Thought: I refund it.\nAction: refund\nAction Input: {json.dumps(ARGUMENTS)}"

    return Scripted(model="scripted")
