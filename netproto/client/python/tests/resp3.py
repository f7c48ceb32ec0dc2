"""RESP3 for a redis-py that has none: parsers that give what those of newer ones give."""

from typing import Any, Generator

from redis.asyncio.connection import PythonParser as AsyncParser
from redis.connection import PythonParser
from redis.exceptions import ConnectionError, InvalidResponse


def reply(parser: Any) -> Generator[Any, bytes, Any]:
    """Reads a reply: it asks for a line by None, or for so many bytes, and is sent them."""
    line = yield None
    if not line:
        raise ConnectionError("Connection closed by server.")
    kind, rest = line[:1], line[1:]
    if kind in (b"-", b"!"):
        text = rest if kind == b"-" else (yield int(rest))
        error = parser.parse_error(text.decode(errors="replace"))
        if isinstance(error, ConnectionError):
            raise error
        return error
    if kind == b"_":
        return None
    if kind in (b":", b"("):
        return int(rest)
    if kind == b",":
        return float(rest)
    if kind == b"#":
        return rest == b"t"
    if kind in (b"$", b"="):
        text = yield int(rest)
        return text[4:] if kind == b"=" else text
    if kind in (b"*", b"~"):
        elements = []
        for _ in range(int(rest)):
            elements.append((yield from reply(parser)))
        return elements
    if kind == b"%":
        fields = {}
        for _ in range(int(rest)):
            name = yield from reply(parser)
            fields[name] = yield from reply(parser)
        return fields
    if kind == b"+":
        return rest
    raise InvalidResponse(f"Protocol Error: {line!r}")


class Parser(PythonParser):
    def read_response(self, disable_decoding: bool = False) -> Any:
        steps = reply(self)
        wanted = next(steps)
        while True:
            got = self._buffer.readline() if wanted is None else self._buffer.read(wanted)
            try:
                wanted = steps.send(got)
            except StopIteration as end:
                return end.value


class AsyncResp3Parser(AsyncParser):
    async def read_response(self, disable_decoding: bool = False) -> Any:
        if self._buffer is None:
            raise ConnectionError("Connection closed by server.")
        steps = reply(self)
        wanted = next(steps)
        while True:
            got = await (self._buffer.readline() if wanted is None else self._buffer.read(wanted))
            try:
                wanted = steps.send(got)
            except StopIteration as end:
                return end.value


def hello(connection: Any) -> None:
    connection.on_connect()
    connection.send_command("HELLO", 3)
    assert isinstance(connection.read_response(), dict)


async def async_hello(connection: Any) -> None:
    await connection.on_connect()
    await connection.send_command("HELLO", 3)
    assert isinstance(await connection.read_response(), dict)


SYNC = {"parser_class": Parser, "redis_connect_func": hello}
ASYNC = {"parser_class": AsyncResp3Parser, "redis_connect_func": async_hello}
