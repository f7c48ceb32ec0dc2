"""The two clients: the same calls, for threads and for asyncio."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import inspect
import math
import os
import secrets
import signal
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast, overload

import redis
import redis.asyncio

from . import requests
from .consume import Engine, Tasks, Threads, Worker, begin
from .errors import Away, HoldfastError, Unknown, refusal
from .packet import Packet, in_seconds, milliseconds
from .requests import Request, Time, WorkOptions

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")  # what consume gives: nothing, or a coroutine
F = TypeVar("F", bound=Callable[..., Any])
Handler = Callable[[Packet], object]
BatchHandler = Callable[[list[Packet]], object]
Workers = list[Worker]
Connections = list[Any]
Words = Sequence[Any]
Replies = list[Any]

PATIENCE = 5.0  # without socket_timeout: how many seconds the server may be silent
CALLS = 64  # how many calls an AsyncClient makes at once, each over a connection of its own
PAUSES = (0.05, 0.2, 0.5)  # before the repetitions of a request


def lost(error: BaseException, sent: bool) -> HoldfastError:
    """What stands in place of a reply when the connection is lost."""
    text = str(error) or "no answer in time"
    if sent:
        return Unknown(f"no answer came, the call may have been carried out: {text}")
    return Away(f"the server was not reached: {text}")


def converse(request: Request[T], patience: float) -> Generator[tuple[Words, float, float], Any, T]:
    """What to send for a request until there is a result: words, patience, and a pause before.

    It is sent what comes back: the reply, or the error in its place.
    """
    end = time.monotonic() + (request.block or 0.0)
    pauses, pause = iter(PAUSES), 0.0
    while request.words:
        said, wait = list(request.words), patience + request.extra
        if request.block is not None:
            turn = max(0.001, min(request.turn, end - time.monotonic()))
            said += ["BLOCK", milliseconds(turn)]
            wait = float(math.ceil(wait + min(request.turn, request.block)))
        reply = yield said, wait, pause
        if isinstance(reply, Away) or isinstance(reply, Unknown) and request.again:
            if (pause := next(pauses, -1.0)) < 0:
                raise Away(str(reply))
            continue
        if isinstance(reply, HoldfastError):
            raise reply
        if reply is not None or request.block is None or time.monotonic() >= end:
            return request.read(reply)
        pause = 0.0
    return request.read(None)  # there is nothing to ask


if TYPE_CHECKING:

    class _Call(Generic[P, T]):
        @overload
        def __get__(self, client: Client, owner: Any = None) -> Callable[P, T]: ...
        @overload
        def __get__(self, client: AsyncClient, owner: Any = None) -> Callable[P, Coroutine[Any, Any, T]]: ...
        def __get__(self, client: Any, owner: Any = None) -> Any: ...


def _call(make: Callable[P, Request[T]]) -> _Call[P, T]:
    """Makes the method that sends a request: it returns the result, or a coroutine of it."""

    @functools.wraps(make)
    def method(self: Any, *args: Any, **options: Any) -> Any:
        return self.send(make(*args, **options))

    signature = inspect.signature(make)
    client = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    result = str(signature.return_annotation).removeprefix("Request[")[:-1]
    parameters = [client, *signature.parameters.values()]
    method.__signature__ = signature.replace(parameters=parameters, return_annotation=result)  # type: ignore[attr-defined]
    return cast("_Call[P, T]", method)


class _Calls(Generic[R]):
    """The calls of both clients: those of AsyncClient are awaited."""

    push = _call(requests.push)
    push_told = _call(requests.push_told)
    push_batch = _call(requests.push_batch)
    pop = _call(requests.pop)
    claim = _call(requests.claim)
    ack = _call(requests.ack)
    nack = _call(requests.nack)
    extend = _call(requests.extend)
    progress = _call(requests.progress)
    peek = _call(requests.peek)
    list = _call(requests.listing)
    show = _call(requests.show)
    len = _call(requests.length)
    queues = _call(requests.queues)
    stats = _call(requests.stats)
    consumers = _call(requests.consumers)
    producers = _call(requests.producers)
    shares = _call(requests.shares)
    set_share = _call(requests.set_share)
    reset_share = _call(requests.reset_share)
    set = _call(requests.set_)
    get = _call(requests.get)
    pause = _call(requests.pause)
    resume = _call(requests.resume)
    close_queue = _call(requests.close_queue)
    drop = _call(requests.drop)
    purge = _call(requests.purge)
    harvest = _call(requests.harvest)
    redrive = _call(requests.redrive)
    redrive_packet = _call(requests.redrive_packet)
    move_all = _call(requests.move_all)
    move = _call(requests.move)
    delete = _call(requests.delete)
    cancel = _call(requests.cancel)
    set_priority = _call(requests.set_priority)
    reschedule = _call(requests.reschedule)
    reschedule_in = _call(requests.reschedule_in)

    _pool: Any
    _runner: Any

    def __init__(self, url: str, pool: Any, **options: Any) -> None:
        if "client_name" not in options:  # an exclusive role is of a name
            name = f"{socket.gethostname()[:64]}-{os.getpid()}-{secrets.token_hex(3)}"
            options = {"client_name": name, **options}
        self._url, self._options = url, options
        self._pool = pool.from_url(url, **options)
        kwargs = self._pool.connection_kwargs
        self._patience = float(kwargs.get("socket_timeout") or PATIENCE)
        kwargs["socket_timeout"] = self._patience
        kwargs.setdefault("socket_connect_timeout", self._patience)
        kwargs.setdefault("socket_keepalive", True)
        kwargs.update(decode_responses=False, encoding_errors="surrogateescape")
        if issubclass(self._pool.connection_class, (redis.SSLConnection, redis.asyncio.SSLConnection)):
            kwargs.setdefault("ssl_check_hostname", kwargs.get("ssl_cert_reqs") != "none")
        self._workers: Workers = []
        self._stopped = threading.Event()

    @property
    def stopping(self) -> bool:
        """Whether shutdown or a signal has come: long work may end early, and raise Uncounted."""
        return self._stopped.is_set()

    def consume(self, queue: str, handler: Handler, **options: Unpack[WorkOptions]) -> R:
        """Claims packets and has the handler work on them, as many at once as concurrency says.

        A handler that returns acknowledges its packet; an exception returns it, to be tried again.
        Leases are renewed meanwhile. A server that is away is waited for. It returns when the queue
        is closed and drained, after shutdown(), and as the option burst says; it raises any other refusal of the server, and
        waits for the handlers before. See WorkOptions.

        Of Client each handler runs in a thread: when its lease is lost, packet.check() raises. Of
        AsyncClient each is a task, which must not block the event loop: when its lease is lost it
        is cancelled, and packet.lost says why. When consume is cancelled, so are its tasks, and
        their packets return uncounted.
        """
        return self._work([Worker(self._runner, queue, handler, options)])

    def consume_batch(self, queue: str, size: int, fill: Time, handler: BatchHandler, **options: Unpack[WorkOptions]) -> R:
        """Consume for a handler that works on up to size packets at once, 1 to 1,000.

        It waits for so many, but once there is one no longer than fill seconds. Packets that the
        handler has acknowledged or returned itself are left out of its answer.
        """
        return self._work([Worker(self._runner, queue, handler, options, size, fill)])

    def work(self, timeout: Time = 30.0) -> R:
        """Runs all workers until each has ended by itself, as consume does, or a signal comes.

        SIGTERM and SIGINT end it as shutdown(timeout) does, a second one at once. It is for the
        main thread.
        """
        return self._work(self._workers, in_seconds(timeout, "timeout"))

    def _work(self, workers: Workers, timeout: float | None = None) -> R:
        raise NotImplementedError

    def worker(self, queue: str, *, size: int = 0, fill: Time = 1.0, **options: Unpack[WorkOptions]) -> Callable[[F], F]:
        """Makes a function a handler of a queue's packets, for work(). See consume.

        With a size it is a handler of batches: see consume_batch.
        """

        def register(handler: F) -> F:
            self._workers.append(Worker(self._runner, queue, handler, options, size, fill))
            return handler

        return register


class Client(_Calls[None]):
    """A client for threads: many may use it at once.

    The URL is redis:// or rediss:// with user, password and database, as for redis.Redis.from_url;
    options are those of its connections, such as ssl_ca_certs. socket_timeout is how many seconds a
    connection may take, and the server be silent: 5 unless given. Without a client_name the client
    gets one that no other has. The client connects when it is first used.
    """

    _runner = Threads

    def __init__(self, url: str = "redis://127.0.0.1:6379", **options: Any) -> None:
        super().__init__(url, redis.ConnectionPool, **options)
        self.redis = redis.Redis(connection_pool=self._pool)  # for every other command
        self._idle: dict[int, Connections] = {}  # by the process: a fork has its own
        self._running: set[tuple[int, asyncio.AbstractEventLoop, AsyncClient]] = set()  # here, too

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections. What consume holds is not returned: call shutdown before."""
        for idle in self._idle.values():
            _end(idle)
        self._pool.disconnect()

    def send(self, request: Request[T]) -> T:
        """Sends a request of the module requests, as often as it may be, and reads the reply."""
        talk, reply = converse(request, self._patience), None
        while True:
            try:
                words, patience, pause = talk.send(reply)
            except StopIteration as end:
                return cast(T, end.value)
            if pause:
                time.sleep(pause)
            reply = self._exchange(words, patience, request.again)

    def _exchange(self, words: Words, patience: float, again: bool) -> Any:
        """Sends a request once. Returns the reply, or the error in its place."""
        idle, sent = self._idle.setdefault(os.getpid(), []), False
        try:
            connection = idle.pop()
        except IndexError:
            connection = self._pool.connection_class(**self._pool.connection_kwargs)
            again = True
        try:
            if not again and _has_ended(connection):
                connection.disconnect()
            connection.connect()
            connection._sock.settimeout(None if math.isinf(patience) else patience)
            sent = True
            connection.send_command(*words)
            try:
                reply = connection.read_response()
            except redis.ResponseError as error:
                reply = refusal(error)
        except BaseException as error:
            connection.disconnect()
            if not isinstance(error, (redis.RedisError, OSError)):
                raise
            _end(idle)  # a network that goes silent has lost these, too
            return refusal(error) or lost(error, sent)
        idle.append(connection)
        return reply

    def shutdown(self, timeout: Time = 30.0) -> int:
        """Ends every consume, now and later: they claim no more, and it waits for the handlers.

        After so many seconds it returns their packets for others to take at once, uncounted, and
        says how many there were. Their threads go on to their end.
        """
        timeout, left = in_seconds(timeout, "timeout"), 0
        self._stopped.set()
        running = [entry for entry in self._running if entry[0] == os.getpid()]
        start = asyncio.run_coroutine_threadsafe
        for ended in [start(inner.shutdown(timeout), loop) for _, loop, inner in running]:
            with suppress(concurrent.futures.CancelledError, concurrent.futures.TimeoutError):
                left += ended.result(timeout + 4 * self._patience)
        return left

    def _work(self, workers: Workers, timeout: float | None = None) -> None:
        async def main() -> None:
            async with AsyncClient(self._url, **self._options) as inner:
                inner._stopped = self._stopped
                entry = os.getpid(), asyncio.get_running_loop(), inner
                self._running.add(entry)
                try:
                    await inner._work(workers, timeout)
                finally:
                    self._running.discard(entry)

        asyncio.run(main())


def _end(idle: Connections) -> None:
    with suppress(IndexError):  # other threads take some of them meanwhile
        while True:
            idle.pop().disconnect()


@contextmanager
def on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Has SIGTERM and SIGINT call stop in the event loop."""
    loop = asyncio.get_running_loop()
    before: dict[int, Any] = {}
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            before[number] = signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop))
        yield
    finally:
        for caught, handler in before.items():
            signal.signal(caught, handler or signal.SIG_DFL)  # one that is not Python's is not known


def _has_ended(connection: Any) -> bool:
    """Whether the server has ended an idle connection, so that a request would be Unknown."""
    try:
        return bool(connection.can_read(0))
    except (redis.RedisError, OSError):
        return True


class AsyncClient(_Calls["Coroutine[Any, Any, None]"]):
    """A client for asyncio, of one event loop: the same as Client, but its calls are awaited."""

    _runner = Tasks

    def __init__(self, url: str = "redis://127.0.0.1:6379", **options: Any) -> None:
        super().__init__(url, redis.asyncio.ConnectionPool, **options)
        self.redis: Any = redis.asyncio.Redis(connection_pool=self._pool)  # for every other command
        self._idle: Connections = []
        self._calls = asyncio.Semaphore(CALLS)  # for those that do not wait in the server
        self._engines: set[Engine] = set()
        self._ending: set[asyncio.Future[Any]] = set()  # calls of shutdown

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections. What consume holds is not returned: call shutdown before."""
        while self._idle:
            await self._idle.pop().disconnect()
        await self._pool.disconnect()

    async def send(self, request: Request[T]) -> T:
        """Sends a request of the module requests, as often as it may be, and reads the reply."""
        talk, reply = converse(request, self._patience), None
        while True:
            try:
                words, patience, pause = talk.send(reply)
            except StopIteration as end:
                return cast(T, end.value)
            if pause:
                await asyncio.sleep(pause)
            async with self._calls if request.block is None else nullcontext():
                [reply] = await self._exchange([words], patience, request.again)

    def _connection(self) -> Any:
        """A connection without a timeout: each exchange has its own."""
        return self._pool.connection_class(**{**self._pool.connection_kwargs, "socket_timeout": None})

    async def _exchange(self, commands: Sequence[Words], patience: float, again: bool = True) -> Replies:
        """Sends requests together, once. Returns the replies, with errors in their places."""
        connection = self._idle.pop() if self._idle else self._connection()
        reader = getattr(connection, "_reader", None)
        if not again and reader is not None and reader.at_eof():
            await connection.disconnect()
        replies = await self._talk(connection, commands, patience)
        self._idle.append(connection)
        return replies

    async def _talk(self, connection: Any, commands: Sequence[Words], patience: float) -> Replies:
        """Sends requests over a connection. It is lost when nothing comes for as long as patience."""
        sent, heard = False, time.monotonic()

        async def talk() -> Replies:
            nonlocal sent
            await connection.connect()
            reader = connection._reader

            def feed(data: bytes) -> None:
                nonlocal heard
                heard = time.monotonic()
                type(reader).feed_data(reader, data)

            reader.feed_data = feed
            sent = True
            await connection.send_packed_command(connection.pack_commands(commands))
            replies: Replies = []
            for _ in commands:
                try:
                    replies.append(await connection.read_response())
                except redis.ResponseError as error:
                    replies.append(refusal(error))
            return replies

        talking = begin(talk())
        try:
            while not talking.done():
                if (left := heard + patience - time.monotonic()) <= 0:
                    raise asyncio.TimeoutError
                await asyncio.wait({talking}, timeout=None if math.isinf(left) else left)
            return talking.result()
        except BaseException as error:
            talking.cancel()
            with suppress(Exception):
                await connection.disconnect()
            if not isinstance(error, (redis.RedisError, OSError, asyncio.TimeoutError)):
                raise
            return [refusal(error) or lost(error, sent)] * len(commands)

    async def shutdown(self, timeout: Time = 30.0) -> int:
        """Ends every consume, now and later: they claim no more, and it waits for the handlers.

        After so many seconds it cancels them, returns their packets for others to take at once,
        uncounted, and says how many there were.
        """
        timeout = in_seconds(timeout, "timeout")
        self._stopped.set()
        ending = asyncio.gather(*(engine.shutdown(timeout) for engine in tuple(self._engines)))
        self._ending.add(ending)
        return sum(await ending)

    async def _work(self, workers: Workers, timeout: float | None = None) -> None:
        if self.stopping or not workers:
            return
        timeouts = iter([timeout or 0.0])

        def stop() -> None:
            self._ending.add(asyncio.ensure_future(self.shutdown(next(timeouts, 0.0))))

        engines = [Engine(self, worker) for worker in workers]
        tasks = [begin(engine.run()) for engine in engines]
        with nullcontext() if timeout is None else on_signals(stop):
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
                await asyncio.gather(*(engine.shutdown(timeout or 0.0) for engine in engines))
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, *self._ending, return_exceptions=True)
        for task in tasks:
            task.result()
