"""The recipes of `examples/python`. `BATON_LANGGRAPH` and `BATON_OPENAI_AGENTS` name the Python of each."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest

from baton_client import Context, Handoff
from conftest import KEY, ROOT, Service
from test_client import request_for, wait_for

LANGGRAPH = os.environ.get("BATON_LANGGRAPH")
OPENAI_AGENTS = os.environ.get("BATON_OPENAI_AGENTS")


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
        assert second.communicate(timeout=20)[0] == ""
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
            output, _ = agent.communicate(timeout=60)
        finally:
            stop.set()
            worker.join(10)
    assert output == "The resolver says completed: done with Order 4711 was charged twice\n"
