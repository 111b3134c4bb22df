"""Runs LiteLLM's router for tests of many files: sends prompts through the router of a configuration.

All calls of providers go to the address in INTERNET instead, as `<address>/<host>/<path>`. Each line of standard input is
{"config": text, "group": name}. Each line of standard output but the first is {"answer": text or null, "error": text or null}.
"""

import asyncio
import os
import traceback

from litellm_common import load, serve

import httpx
import litellm
from litellm.llms.vertex_ai.vertex_llm_base import VertexBase

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


async def ask(config: str, group: str) -> dict:
    router, _, _ = await load(config)
    try:
        prompt = [{"role": "user", "content": "Say OK."}]
        response = await asyncio.wait_for(router.acompletion(model=group, messages=prompt), 120)
    except TimeoutError:
        return {"answer": None, "error": f"no answer: {traceback.format_exc()[-2000:]}"}
    except Exception as error:
        return {"answer": None, "error": f"{type(error).__name__}: {error}"[:500]}
    return {"answer": response.choices[0].message.content or "", "error": None}


serve(ask)
