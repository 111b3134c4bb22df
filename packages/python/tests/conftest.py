"""The services that the tests start: the real ones, with SQLite in memory or in a file."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
KEY = "an-admin-key-of-the-python-tests"


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


class Service:
    """A service as a process of its own."""

    def __init__(self, program: str, *flags: str, database: str = "sqlite::memory:") -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._command = [str(ROOT / "node_modules/.bin/node"), str(ROOT / "bin" / program), "serve", *flags]
        self._database = database
        self.start()

    def start(self) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SERVICE_")}
        settings = {
            "SERVICE_ADMIN_KEY": KEY,
            "SERVICE_HOST": "127.0.0.1",
            "SERVICE_PORT": str(self.port),
            "SERVICE_DATABASE_URL": self._database,
            "SERVICE_LOG_LEVEL": "error",
            "SERVICE_RATE_LIMIT_PER_MINUTE": "0",
            "SERVICE_HOURLY_QUOTA_BUSINESS": "0",
            "SERVICE_WEBHOOK_ALLOW": "127.0.0.1",
        }
        command = self._command + ([] if "service-cli" in self._command[1] else ["--port", str(self.port)])
        self.process = subprocess.Popen(
            command, env={**kept, **settings}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if re.search(r"listening on", line):
                return
        raise AssertionError("".join(lines))

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait()


@pytest.fixture(scope="session")
def handoff_service() -> Iterator[Service]:
    service = Service("service-cli.js")
    yield service
    service.stop()


@pytest.fixture(scope="session")
def fallback_service() -> Iterator[Service]:
    service = Service("fallback-service.js")
    yield service
    service.stop()


@pytest.fixture
def own_service(tmp_path: Path) -> Iterator[Service]:
    """A service with a database in a file, which a test may kill and start again."""
    service = Service("service-cli.js", database=f"sqlite://{tmp_path}/handoff.db")
    yield service
    service.stop()
