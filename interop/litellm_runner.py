"""Runs LiteLLM's proxy for tests: loads configurations as it does, and sends prompts to its own route.

The first line of standard output is {"providers": names}. Each line of standard input is {"config": text, "group": name}. Each further line of standard output is {"answer": text or null, "error": text or null}.
"""

import asyncio
import json
import os
import sys
import tempfile

# Only answers go to standard output; LiteLLM prints hints there.
answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)
os.environ |= {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOG": "CRITICAL",
    # The waits between retries, which LiteLLM takes from the environment.
    "INITIAL_RETRY_DELAY": "0.001",
    "MAX_RETRY_DELAY": "0.001",
    "JITTER": "0",
}

import httpx  # noqa: E402
import litellm  # noqa: E402
from litellm.proxy import proxy_server  # noqa: E402

# A configuration sets attributes of the module; each starts with those of a new process.
defaults = {name: value for name, value in vars(litellm).items() if value is None or isinstance(value, (bool, int, float, str))}


async def ask(config: str, group: str) -> dict:
    for name, value in defaults.items():
        setattr(litellm, name, value)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(config)
        file.flush()
        loaded = await proxy_server.proxy_config.load_config(router=None, config_file_path=file.name)
    proxy_server.llm_router, proxy_server.llm_model_list, proxy_server.general_settings = loaded
    body = {"model": group, "messages": [{"role": "user", "content": "Say OK."}]}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=proxy_server.app), base_url="http://proxy") as client:
        response = await client.post("/v1/chat/completions", json=body, timeout=60)
    if response.status_code != 200:
        return {"answer": None, "error": f"{response.status_code}: {response.text}"[:500]}
    return {"answer": response.json()["choices"][0]["message"]["content"] or "", "error": None}


async def main() -> None:
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        try:
            answer = await ask(**json.loads(line))
        except Exception as error:
            answer = {"answer": None, "error": f"refused: {type(error).__name__}: {error}"[:500]}
        answers.write(json.dumps(answer) + "\n")


answers.write(json.dumps({"providers": [str(getattr(one, "value", one)) for one in litellm.provider_list]}) + "\n")
asyncio.run(main())
