"""Runs LiteLLM's router for many configurations and scenes in one process, without a network.

Each line of standard input is {"config": text, "group": name, "fresh": bool, "scenes": [{host: failure}]}: the hosts that
fail in a scene, each with {"status", "text"}, or "timeout" or "reset" instead. All others answer. Each line of
standard output but the first is [{"calls": [host], "answer": text or null, "error": text or null}], in the order of the scenes. `fresh`
plays them one after the other, each without what LiteLLM remembers of failures.
"""

import asyncio
from urllib.parse import urlsplit

from litellm_common import load, serve

import httpx
import litellm

scenes: dict[str, dict] = {}
litellm.Router._time_to_sleep_before_retry = lambda *_, **__: 0

# The answers of the protocols, by what their paths contain.
answers_by_path = {
    "/messages": {
        "id": "a",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "OK"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
    "enerateContent": {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "OK"}]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
    },
    "": {
        "id": "a",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "OK"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        # The client of Groq expects it.
        "service_tier": "default",
    },
}


async def fake(self, request: httpx.Request, **_):
    text = request.content.decode()
    scene = next(scene for mark, scene in scenes.items() if mark in text)
    host = urlsplit(str(request.url)).hostname
    scene["calls"].append(host)
    failure = scene["failures"].get(host)
    if failure == "timeout":
        raise httpx.ReadTimeout("no answer", request=request)
    if failure == "reset":
        raise httpx.ConnectError("connection reset", request=request)
    if failure is not None:
        headers = {"content-type": "application/json", "retry-after": "1"}
        return httpx.Response(failure["status"], text=failure["text"], headers=headers, request=request)
    answer = next(answer for name, answer in answers_by_path.items() if name in request.url.path)
    return httpx.Response(200, json=answer, request=request)


httpx.AsyncClient.send = fake


async def play(router, group: str, number: int, failures: dict) -> dict:
    mark = f"scene {number}."
    scene = scenes[mark] = {"failures": failures, "calls": []}
    answer = error = None
    try:
        response = await router.acompletion(model=group, messages=[{"role": "user", "content": f"Say OK in {mark}"}])
        answer = response.choices[0].message.content or ""
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"[:300]
    del scenes[mark]
    return {"calls": scene["calls"], "answer": answer, "error": error}


def forget(router) -> None:
    router.cache.flush_cache()
    store = getattr(router.cooldown_cache, "cooldown_store", None)
    if store is not None:
        # Since version 1.109.
        for key in list(store.snapshot()):
            store.evict_local(key.removeprefix("deployment:").removesuffix(":cooldown"))
        store.flush_local_counters()
        return
    for cache in (router.cooldown_cache.in_memory_cache, router.cooldown_cache._cooldown_store):
        cache.flush_cache()


async def run(config: str, group: str, fresh: bool, scenes: list) -> list:
    router, _, _ = await load(config)
    if not fresh:
        return await asyncio.gather(*(play(router, group, number, failures) for number, failures in enumerate(scenes)))
    played = []
    for number, failures in enumerate(scenes):
        played.append(await play(router, group, number, failures))
        # Cooldowns, and the counts that lead to them, must not last to the next scene.
        await asyncio.sleep(0)
        forget(router)
    return played


serve(run)
