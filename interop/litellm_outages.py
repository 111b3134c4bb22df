"""Runs LiteLLM's router through outages, by a clock of its own and without a network, so that minutes take no time.

Each line of standard input is {"config": text, "group": name, "every": s, "count": n, "outages": [{"host", "from", "to", "status",
"text", "retry_after"}]}, with times in seconds: prompts begin at 0, every, 2 * every, ... Each line of standard output but the first
is [{"start": s, "calls": [{"host", "at": s, "failed"}], "answer": text or null, "error": text or null}].
"""

import asyncio
import time
from urllib.parse import urlsplit

from litellm_common import load, serve

import httpx
import litellm
from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER

# LiteLLM asks this clock for cool-downs, the times of its caches included.
begin = time.time()
now = {"s": 0.0}
time.time = lambda: begin + now["s"]
litellm.Router._time_to_sleep_before_retry = lambda *_, **__: 0

calls: list = []
failing: list = []

answer = {
    "id": "a",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "OK"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}


async def fake(self, request: httpx.Request, **_):
    host = urlsplit(str(request.url)).hostname
    at = now["s"]
    outage = next((one for one in failing if one["host"] == host and one["from"] <= at < one["to"]), None)
    calls.append({"host": host, "at": at, "failed": outage is not None})
    # A call takes a millisecond.
    now["s"] += 0.001
    if outage is None:
        return httpx.Response(200, json=answer, request=request)
    headers = {"content-type": "application/json"}
    if outage.get("retry_after") is not None:
        headers["retry-after"] = str(outage["retry_after"])
    return httpx.Response(outage["status"], text=outage["text"], headers=headers, request=request)


httpx.AsyncClient.send = fake


async def settled() -> None:
    """Waits until LiteLLM has counted the failures of a prompt, which it does behind the answer."""
    for _ in range(20):
        await asyncio.sleep(0)
    await GLOBAL_LOGGING_WORKER.flush()


async def run(config: str, group: str, every: float, count: int, outages: list) -> list:
    # A file starts long after the one before, so that no cache remembers that.
    now["s"] += 100_000
    router, _, _ = await load(config)
    start = now["s"]
    failing[:] = [{**one, "from": one["from"] + start, "to": one["to"] + start} for one in outages]
    played = []
    for index in range(count):
        now["s"] = max(start + index * every, now["s"])
        at = now["s"]
        calls.clear()
        text = error = None
        try:
            response = await router.acompletion(model=group, messages=[{"role": "user", "content": "Say OK."}])
            text = response.choices[0].message.content
        except Exception as raised:
            error = f"{type(raised).__name__} {getattr(raised, 'status_code', '')}: {raised}"[:300]
        made = [{**call, "at": call["at"] - start} for call in calls]
        played.append({"start": at - start, "calls": made, "answer": text, "error": error})
        await settled()
    return played


serve(run)
