"""Runs LiteLLM's proxy for tests: loads configurations, and sends prompts to its own route.

Each line of standard input is {"config": text, "group": name}. Each line of standard output but the first is
{"answer": text or null, "error": text or null}.
"""

from litellm_common import load, serve

import httpx
from litellm.proxy import proxy_server


async def ask(config: str, group: str) -> dict:
    try:
        loaded = await load(config)
    except Exception as error:
        return {"answer": None, "error": f"refused: {type(error).__name__}: {error}"[:500]}
    proxy_server.llm_router, proxy_server.llm_model_list, proxy_server.general_settings = loaded
    body = {"model": group, "messages": [{"role": "user", "content": "Say OK."}]}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=proxy_server.app), base_url="http://proxy") as client:
        response = await client.post("/v1/chat/completions", json=body, timeout=60)
    if response.status_code != 200:
        return {"answer": None, "error": f"{response.status_code}: {response.text}"[:500]}
    return {"answer": response.json()["choices"][0]["message"]["content"] or "", "error": None}


serve(ask)
