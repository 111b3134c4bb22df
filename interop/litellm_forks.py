"""LiteLLM's proxy without its long import at each start.

`litellm_forks.py serve SOCKET` imports LiteLLM once. `litellm_forks.py run SOCKET ARGUMENTS...` then is what
`litellm ARGUMENTS...` would be: a fork of that process, with the arguments, the environment and the output of this one. It ends with this one.
"""

import json
import os
import signal
import socket
import sys
import threading


def serve(path: str) -> None:
    os.environ.update(LITELLM_LOCAL_MODEL_COST_MAP="True", HF_HUB_OFFLINE="1")
    import litellm.proxy.proxy_server  # noqa: F401

    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    print("ready", flush=True)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # It ends with the program that started it.
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    while True:
        connection, _ = server.accept()
        if os.fork() == 0:
            server.close()
            play(connection)
        connection.close()


def play(connection: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    text, outputs, _, _ = socket.recv_fds(connection, 1 << 20, 2)
    request = json.loads(text)
    os.setsid()
    for number, output in enumerate(outputs, 1):
        os.dup2(output, number)
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = ["litellm", *request["arguments"]]
    threading.Thread(target=lambda: (connection.recv(1), os._exit(0)), daemon=True).start()
    from litellm import run_server

    try:
        run_server()
    finally:
        sys.stdout.flush()
        os._exit(1)


def run(path: str, arguments: list[str]) -> None:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    request = {"arguments": arguments, "environment": dict(os.environ)}
    socket.send_fds(connection, [json.dumps(request).encode()], [1, 2])
    connection.recv(1)
    sys.exit(1)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        run(sys.argv[2], sys.argv[3:])
