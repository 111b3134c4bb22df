"""The recipes of `examples/python`. `BATON_LANGGRAPH` and the other variables name the Python of each."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest

from baton_client import Context, Handoff
from conftest import KEY, ROOT, Service
from test_approvals import deciding
from test_client import request_for, wait_for

LANGGRAPH = os.environ.get("BATON_LANGGRAPH")
OPENAI_AGENTS = os.environ.get("BATON_OPENAI_AGENTS")
PYDANTIC_AI = os.environ.get("BATON_PYDANTIC_AI")
APPROVALS = [
    ("langchain", LANGGRAPH, "call-langchain"),
    ("openai_agents", OPENAI_AGENTS, "call-agents"),
    ("pydantic_ai", PYDANTIC_AI, "call-pydantic"),
    # By hand: `check` makes no environment for it.
    ("crewai", os.environ.get("BATON_CREWAI"), "order-4711:refund"),
]
DECISIONS: list[tuple[dict[str, object], str, str]] = [
    ({"decision": "approve"}, "refunded 500", "ORD-4711 500\n"),
    ({"decision": "edit", "arguments": {"order": "ORD-4711", "amount": 40}}, "refunded 40", "ORD-4711 40\n"),
    ({"decision": "reject", "message": "Ask again in May"}, "Ask again in May", ""),
]


def start(python: str, name: str, service: Service, **settings: str) -> subprocess.Popen[str]:
    kept = {name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"}
    env = {**kept, "SERVICE_URL": service.url, "SERVICE_API_KEY": KEY, **settings}
    return subprocess.Popen([python, str(ROOT / "examples/python" / name)], env=env, stdout=subprocess.PIPE, text=True)


@pytest.mark.skipif(LANGGRAPH is None, reason="BATON_LANGGRAPH names no Python")
def test_a_graph_goes_on_in_another_process_after_the_answer(handoff_service: Service, tmp_path: Path) -> None:
    assert LANGGRAPH is not None
    settings = {"AGENT": "graph", "LEASE_SECONDS": "2", "CHECKPOINTS": str(tmp_path / "checkpoints.db")}
    with Handoff(handoff_service.url, KEY) as client:
        packet = client.create_packet(body=request_for("graph", "order 4711"))
        first = start(LANGGRAPH, "langgraph_worker.py", handoff_service, **settings)
        asked = wait_for(client, packet, "awaiting_human")["hitl"]
        assert asked is not None
        assert asked["question"] == "Refund for: order 4711?"
        first.kill()
        assert first.communicate()[0] == "drafted\n"
        client.respond_packet(packet["id"], body={"response": "Approve", "responded_by": "dana"})
        second = start(LANGGRAPH, "langgraph_worker.py", handoff_service, **settings)
        done = wait_for(client, packet, "completed")
        assert done["context"]["custom"]["result"] == "refunded"
        second.terminate()
        # The node before the interrupt is not run again.
        assert second.communicate(timeout=600)[0] == ""
        assert second.returncode == 0


@pytest.mark.skipif(OPENAI_AGENTS is None, reason="BATON_OPENAI_AGENTS names no Python")
def test_an_agent_of_the_openai_sdk_uses_an_agent_elsewhere_as_a_tool(handoff_service: Service) -> None:
    assert OPENAI_AGENTS is not None
    stop = threading.Event()

    def handler(ctx: Context) -> dict[str, object]:
        return {"context": {"custom": {"result": f"done with {ctx.packet['context']['summary']}"}}}

    with Handoff(handoff_service.url, KEY) as client:
        worker = threading.Thread(target=client.work, args=("resolver", handler), kwargs={"stop": stop})
        worker.start()
        try:
            agent = start(OPENAI_AGENTS, "openai_agents.py", handoff_service)
            output, _ = agent.communicate(timeout=600)
        finally:
            stop.set()
            worker.join(10)
    assert output == "The resolver says completed: done with Order 4711 was charged twice\n"


@pytest.mark.parametrize(("framework", "python", "call_id"), APPROVALS)
@pytest.mark.parametrize(("decision", "said", "executed"), DECISIONS)
def test_an_approval_survives_the_process_of_the_framework(
    tmp_path: Path,
    own_service: Service,
    framework: str,
    python: str | None,
    call_id: str,
    decision: dict[str, object],
    said: str,
    executed: str,
) -> None:
    if python is None:
        pytest.skip("No environment variable names its Python")
    with Handoff(own_service.url, KEY) as admin:
        key = admin.create_key(body={"name": "refunds", "scopes": ["read", "work"], "agents": ["refunds"]})["key"]
    ledger = tmp_path / "ledger"
    settings = {"SERVICE_API_KEY": key, "STATE": str(tmp_path / "state"), "LEDGER": str(ledger)}
    name = f"approve_{framework}.py"
    # The first process dies between the approval and the execution.
    first = start(python, name, own_service, **settings, DIES="1")
    deciding(own_service, call_id, **decision)
    first.communicate(timeout=600)
    assert first.returncode == 9
    assert not ledger.exists()
    second = start(python, name, own_service, **settings)
    output, _ = second.communicate(timeout=600)
    assert said in output
    assert (ledger.read_text() if ledger.exists() else "") == executed
