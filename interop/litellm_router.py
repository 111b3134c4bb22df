"""Runs LiteLLM's router for tests of many files: loads each configuration as the proxy does, and sends prompts through its router.

All calls of providers go to the address in INTERNET instead, as `<address>/<host>/<path>`. Each line of standard input is
{"config": text, "group": name}. Each line of standard output is {"answer": text or null, "error": text or null}.
"""

import asyncio
import json
import os
import sys
import tempfile
import traceback

answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)
os.environ |= {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOG": "CRITICAL",
    "INITIAL_RETRY_DELAY": "0.001",
    "MAX_RETRY_DELAY": "0.001",
    "JITTER": "0",
}

import httpx  # noqa: E402
import litellm  # noqa: E402
from litellm.llms.vertex_ai.vertex_llm_base import VertexBase  # noqa: E402
from litellm.proxy import proxy_server  # noqa: E402

internet = httpx.URL(os.environ["INTERNET"])
send = httpx.AsyncClient.send


async def redirected(self, request: httpx.Request, **options):
    url = request.url
    if url.host != internet.host:
        path = b"/" + url.host.encode() + url.raw_path
        request.url = internet.copy_with(raw_path=path)
        request.headers["host"] = f"{internet.host}:{internet.port}"
    return await send(self, request, **options)


async def no_credentials(self, credentials, project_id, *_, **__):
    return "token", project_id or "project"


httpx.AsyncClient.send = redirected
# Without this, a group in cooldown would be waited for.
litellm.Router._time_to_sleep_before_retry = lambda *_, **__: 0
VertexBase._ensure_access_token_async = no_credentials
defaults = {name: value for name, value in vars(litellm).items() if value is None or isinstance(value, (bool, int, float, str))}


async def ask(config: str, group: str) -> dict:
    for name, value in defaults.items():
        setattr(litellm, name, value)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(config)
        file.flush()
        router, _, _ = await proxy_server.proxy_config.load_config(router=None, config_file_path=file.name)
    try:
        prompt = [{"role": "user", "content": "Say OK."}]
        response = await asyncio.wait_for(router.acompletion(model=group, messages=prompt), 120)
    except TimeoutError:
        return {"answer": None, "error": f"no answer: {traceback.format_exc()[-2000:]}"}
    except Exception as error:
        return {"answer": None, "error": f"{type(error).__name__}: {error}"[:500]}
    return {"answer": response.choices[0].message.content or "", "error": None}


async def main() -> None:
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        answers.write(json.dumps(await ask(**json.loads(line))) + "\n")


answers.write(json.dumps({"providers": []}) + "\n")
asyncio.run(main())
