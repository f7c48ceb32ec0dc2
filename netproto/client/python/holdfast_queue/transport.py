"""A transport of kombu, and so of Celery, on Holdfast's work queue.

    holdfast://user:password@host:port/database
    holdfasts://…                                 by TLS

Queues are Holdfast's queues of the same names. A message that is delivered is a claim: it is extended
while this process lives, and back in its queue when the process dies. CELERY.md says more.

Options, by broker_transport_options of Celery:

lease                 seconds for which a claim lasts without its process; 30
queue_order_strategy  round_robin, sorted or priority, as in kombu; round_robin
client_name           how the server calls this process; host name and process id
socket_timeout        seconds after which a server that does not answer is lost; 5, or lease/6 if that is
                      less, but at least 1. It must be short, as claims are extended by such commands
socket_connect_timeout, socket_keepalive: of redis-py; as socket_timeout, and yes
"""
from __future__ import annotations

import os
import socket
from contextlib import suppress
from time import monotonic
from typing import Any, Callable
from weakref import ref

import redis
from kombu.transport import virtual
from kombu.utils.eventio import ERR, READ, poll

from .transport_channel import Channel
from .transport_claims import LOST, Claims


#: Options that redis-py gets as they are.
OPTIONS = {"socket_connect_timeout", "socket_timeout", "socket_keepalive", "client_name"}


def begin_what_is_held(request: Any, **kwargs: Any) -> None:
    """Has Celery's worker not begin a task whose claim is lost: it asks when a process is free for it."""
    if not isinstance(getattr(request.message.channel, "claims", None), Claims):
        return  # of another transport
    weak = ref(request)  # a cycle would keep its message, and so its claim

    def begin(pool: Any, **kwargs: Any) -> Any:
        request = weak()
        if request.message.delivery_tag in request.message.channel.claims.held:
            return type(request).execute_using_pool(request, pool, **kwargs)
        from celery.exceptions import TaskRevokedError
        from celery.worker.state import task_ready

        task_ready(request)
        request.acknowledge()  # which makes room for another
        raise TaskRevokedError(request.id)  # it says no more than that the process is free again

    request.execute_using_pool = begin


class Transport(virtual.Transport):
    """A connection of kombu: its channels, its claims, and a pool of connections for commands."""

    Channel = Channel
    polling_interval = None
    default_port = 6379
    # Celery asks this name whether events go to all and whether workers know of each other.
    driver_type = "redis"
    tls = False
    _lost, loop = False, None  # the last command was not answered; Celery's event loop

    implements = virtual.Transport.implements.extend(
        asynchronous=True, exchange_type=frozenset(["direct", "topic", "fanout"]))

    connection_errors = virtual.Transport.connection_errors + LOST
    channel_errors = virtual.Transport.channel_errors + (redis.ResponseError, redis.DataError)
    # What the server has refused is not tried again.
    recoverable_connection_errors = connection_errors
    recoverable_channel_errors = virtual.Transport.channel_errors

    def __init__(self, client: Any, **kwargs: Any):
        super().__init__(client, **kwargs)
        self.pid = os.getpid()
        self.queues: dict[str, int] = {}  # those declared here, and milliseconds that they live unused
        self.fanout: dict[str, tuple[str, str]] = {}  # queues of fanout exchanges, and their keys
        self._readers: dict[int, Callable[[], object]] = {}
        self._poller = poll()
        self._pool = redis.ConnectionPool(**self._parameters())
        self._redis = redis.Redis(connection_pool=self._pool)
        self.claims = Claims(self._redis, float(client.transport_options.get("lease", 30)))

    @property
    def database(self) -> int:
        """The server's database, which is the virtual host."""
        name = (self.client.virtual_host or "").strip("/") or "0"
        if not name.isdigit():
            raise ValueError(f"the database of the address is {name!r}: want a number from 0 to 15")
        return int(name)

    def _parameters(self) -> dict:
        client, options = self.client, self.client.transport_options
        timeout = min(5, max(1, float(options.get("lease", 30)) / 6))
        parameters = {
            "host": client.hostname or "127.0.0.1", "port": client.port or self.default_port,
            "username": client.userid, "password": client.password, "db": self.database,
            "socket_connect_timeout": timeout, "socket_timeout": timeout, "socket_keepalive": True,
            "client_name": f"{socket.gethostname()}:{os.getpid()}",
        }
        parameters.update({name: options[name] for name in OPTIONS & options.keys()})
        if int(redis.__version__.split(".")[0]) >= 5:
            parameters["protocol"] = 2  # packets are read as lists here
        if self.tls or client.ssl:
            parameters["connection_class"] = redis.SSLConnection
            parameters.update(client.ssl if isinstance(client.ssl, dict) else {})
        return parameters

    @property
    def lost(self) -> bool:
        """The server is out of reach, or the connection is that of the process that forked this one."""
        return self._lost or self.pid != os.getpid()

    def call(self, *args: Any) -> Any:
        """Sends a command, and returns its reply."""
        try:
            reply = self._redis.execute_command(*args)
            self._lost = False
            return reply
        except LOST:
            self._lost = True
            raise

    def dial(self) -> tuple[redis.Connection, int]:
        """Opens a connection of its own, and says what the server calls it."""
        connection = self._pool.connection_class(**self._pool.connection_kwargs)
        connection.connect()
        connection.send_command("CLIENT", "ID")
        return connection, connection.read_response()

    def watch(self, fd: int, reader: Callable[[], object]) -> None:
        """Has answers of a connection read when they come."""
        self._readers[fd] = reader
        self._poller.register(fd, READ | ERR)

    def forget(self, fd: int) -> None:
        """Ends watch."""
        self._readers.pop(fd, None)
        if self.loop is not None:
            self.loop.remove(fd)
        self._poller.unregister(fd)

    def establish_connection(self) -> Transport:
        self.call("PING")
        return super().establish_connection()

    def close_connection(self, connection: Any) -> None:
        if self.loop is not None:
            self.loop.on_tick.discard(self._tick)
        super().close_connection(connection)
        self.loop = None
        if not self.lost:
            self._pool.disconnect(inuse_connections=False)

    def drain_events(self, connection: Any, timeout: float | None = None) -> None:
        end = monotonic() + (float("inf") if timeout is None else timeout)
        while not self._turn():
            events = self._poller.poll(max(0, min(1, end - monotonic())))
            if any([self.on_readable(fd) for fd, _ in events or ()]):
                return
            if monotonic() >= end:
                raise socket.timeout()

    def _turn(self) -> bool:
        """Delivers what has come, asks for more, and says whether anything has come."""
        return any([(channel.deliver(), channel.ask())[0] for channel in list(self.channels)])

    def on_readable(self, fd: int) -> bool:
        """Takes what has come on one of the connections, and says whether it was anything."""
        try:
            told = fd in self._readers and self._readers[fd]()
        except LOST:
            return False  # the line has said so, and comes back
        # Not with the next tick: Celery's pool looks in its own tick for what to write to its processes.
        return any([channel.deliver() for channel in list(self.channels)]) or bool(told)

    # Celery's event loop. It forgets what it reads, so it is told each time.

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        self.loop = loop
        with suppress(ImportError):
            from celery.signals import task_received

            task_received.connect(begin_what_is_held)
        loop.on_tick.add(self._tick)

    def _tick(self) -> None:
        self._turn()
        for fd in self._readers:
            if fd not in self.loop.readers:
                self.loop.add_reader(fd, self.on_readable, fd)


class TLSTransport(Transport):
    """The same by TLS, as of holdfasts://."""

    tls = True
