"""Runs LiteLLM's router for many configurations and scenes in one process, without a network.

Each line of standard input is {"config": text, "group": name, "fresh": bool, "scenes": [{host: failure}]}: the hosts that
fail in a scene, each with {"status", "text"}, or "timeout" or "reset" instead. All others answer. With "streams",
{"chat": text, "messages": text}, answers are streamed: these by healthy hosts, and those with "then" break the connection
("cut") or time out ("silence") behind their text. Each line of standard output but the first is [{"calls": [host], "limits": [the longest silence of each call in seconds], "answer": text or null, "error": text or null}],
in the order of the scenes. `fresh` plays them one after the other, each without what LiteLLM remembers of failures.
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


class Stream(httpx.AsyncByteStream):
    """A streamed answer, behind whose text the connection ends, breaks or times out."""

    def __init__(self, text: str, then: str, request: httpx.Request):
        self.text, self.then, self.request = text, then, request

    async def __aiter__(self):
        yield self.text.encode()
        if self.then == "cut":
            raise httpx.ReadError("connection reset", request=self.request)
        if self.then == "silence":
            raise httpx.ReadTimeout("no more", request=self.request)


async def fake(self, request: httpx.Request, **_):
    text = request.content.decode()
    scene = next(scene for mark, scene in scenes.items() if mark in text)
    host = urlsplit(str(request.url)).hostname
    scene["calls"].append(host)
    # What the client takes for the longest time between two parts of an answer.
    scene["limits"].append((request.extensions.get("timeout") or {}).get("read"))
    failure = scene["failures"].get(host)
    if failure == "timeout":
        raise httpx.ReadTimeout("no answer", request=request)
    if failure == "reset":
        raise httpx.ConnectError("connection reset", request=request)
    if failure is not None and "then" in failure:
        return streamed(failure["text"], failure["then"], request)
    if failure is not None:
        headers = {"content-type": "application/json", "retry-after": "1"}
        return httpx.Response(failure["status"], text=failure["text"], headers=headers, request=request)
    if scene["streams"] is not None:
        return streamed(scene["streams"]["messages" if "/messages" in request.url.path else "chat"], "end", request)
    answer = next(answer for name, answer in answers_by_path.items() if name in request.url.path)
    return httpx.Response(200, json=answer, request=request)


def streamed(text: str, then: str, request: httpx.Request) -> httpx.Response:
    headers = {"content-type": "text/event-stream"}
    return httpx.Response(200, headers=headers, stream=Stream(text, then, request), request=request)


httpx.AsyncClient.send = fake


async def text_of(response) -> str:
    """The text of a streamed answer, or the arguments of its tool; an answer that a filter withheld has none."""
    text = ""
    async for chunk in response:
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for call in choice.delta.tool_calls or []:
                text += call.function.arguments or ""
    return text


async def play(router, group: str, number: int, failures: dict, streams: dict | None) -> dict:
    mark = f"scene {number}."
    scene = scenes[mark] = {"failures": failures, "calls": [], "limits": [], "streams": streams}
    answer = error = None
    try:
        messages = [{"role": "user", "content": f"Say OK in {mark}"}]
        response = await router.acompletion(model=group, messages=messages, stream=streams is not None)
        answer = await text_of(response) if streams is not None else response.choices[0].message.content or ""
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"[:300]
    del scenes[mark]
    return {"calls": scene["calls"], "limits": scene["limits"], "answer": answer, "error": error}


def forget(router) -> None:
    router.cache.flush_cache()
    store = getattr(router.cooldown_cache, "cooldown_store", None)
    if hasattr(store, "snapshot"):
        # Since version 1.109.
        for key in list(store.snapshot()):
            store.evict_local(key.removeprefix("deployment:").removesuffix(":cooldown"))
        store.flush_local_counters()
        return
    for cache in (router.cooldown_cache.in_memory_cache, router.cooldown_cache._cooldown_store):
        cache.flush_cache()


async def run(config: str, group: str, fresh: bool, scenes: list, streams: dict | None = None) -> list:
    router, _, _ = await load(config)
    if not fresh:
        return await asyncio.gather(*(play(router, group, number, failures, streams) for number, failures in enumerate(scenes)))
    played = []
    for number, failures in enumerate(scenes):
        played.append(await play(router, group, number, failures, streams))
        # Cooldowns, and the counts that lead to them, must not last to the next scene.
        await asyncio.sleep(0)
        forget(router)
    return played


serve(run)
