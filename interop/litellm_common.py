"""What the programs share that run LiteLLM for tests: its environment, the loading of configurations, and a line for each answer."""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable

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

import litellm  # noqa: E402
from litellm.proxy import proxy_server  # noqa: E402

# A configuration sets attributes of the module; each starts with those of a new process.
defaults = {name: value for name, value in vars(litellm).items() if value is None or isinstance(value, (bool, int, float, str))}
# Each router adds its own, by which it leaves out models; beyond a hundred LiteLLM adds no more.
callbacks = {name: list(value) for name, value in vars(litellm).items() if "callback" in name and isinstance(value, list)}


async def load(config: str) -> tuple:
    """Loads the text of a configuration as the proxy does; returns its router, its models and its general settings."""
    for name, value in defaults.items():
        setattr(litellm, name, value)
    for name, value in callbacks.items():
        getattr(litellm, name)[:] = value
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(config)
        file.flush()
        return await proxy_server.proxy_config.load_config(router=None, config_file_path=file.name)


def serve(answer: Callable[..., Awaitable[object]]) -> None:
    """Writes the names of the providers, then for each line of standard input, an object, what `answer` returns for its members."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            answers.write(json.dumps(await answer(**json.loads(line))) + "\n")

    answers.write(json.dumps({"providers": [str(getattr(one, "value", one)) for one in litellm.provider_list]}) + "\n")
    asyncio.run(run())
