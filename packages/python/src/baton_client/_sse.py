"""Server-sent events, as the HTML standard defines them, with lines that end with LF or CRLF."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from .errors import UnreadableAnswer

LONGEST = 16 * 1024 * 1024
"""The most characters of an event."""
LONGEST_PAUSE = 60.0
"""The longest pause that a stream may ask for, in seconds."""


@dataclass(frozen=True)
class ServerSentEvent:
    """An event of a stream."""

    type: str
    data: str
    id: str | None = None


@dataclass
class Parser:
    """Reads the text of a stream; keeps the id of the last event and the pause that the service asks for."""

    last_id: str | None = None
    retry: float = 3.0
    _type: str = "message"
    _data: list[str] = field(default_factory=list)
    _id: str | None = None
    _rest: list[str] = field(default_factory=list)
    _length: int = 0

    def feed(self, text: str) -> Iterator[ServerSentEvent]:
        """The events that end in this part of the text. Raises UnreadableAnswer for an event that is too long."""
        # Not `splitlines`, nor `iter_lines` of httpx: they also split at characters that JSON leaves as they are.
        *lines, rest = text.split("\n")
        for line in lines:
            # A line that arrives in many parts is joined once.
            whole = "".join([*self._rest, line])
            self._rest = []
            yield from self._read(whole.removesuffix("\r"))
            self._length = sum(map(len, self._data))
        self._rest.append(rest)
        self._length += len(rest)
        if self._length > LONGEST:
            raise UnreadableAnswer(f"An event is longer than {LONGEST} characters.")

    def _read(self, line: str) -> Iterator[ServerSentEvent]:
        if line == "":
            if self._id is not None:
                self.last_id = self._id
            if self._data:
                yield ServerSentEvent(self._type, "\n".join(self._data), self._id)
            self._type, self._data, self._id = "message", [], None
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._type = value
        elif name == "data":
            self._data.append(value)
        elif name == "id":
            self._id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry = min(LONGEST_PAUSE, int(value[-20:]) / 1000)
