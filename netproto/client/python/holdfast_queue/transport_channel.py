"""The channels of the transport: queues, exchanges, and what is delivered."""
from __future__ import annotations

import os
from collections import deque
from contextlib import suppress
from datetime import datetime, timezone
from glob import escape
from queue import Empty
from time import monotonic
from typing import Any, Callable
from uuid import uuid4

import redis
from kombu.exceptions import OperationalError
from kombu.transport import virtual
from kombu.transport.base import to_rabbitmq_queue_arguments
from kombu.utils.json import dumps, loads
from kombu.utils.scheduling import cycle_by_name

from .transport_claims import LOST, REJECTED, REQUEUED, UNTOUCHED, logger

#: The hash of what is bound to an exchange, and the channel of one that tells all. And the exchange of
#: Celery's events, which nobody needs later.
BINDINGS, FANOUT, EVENTS = "_kombu.binding.{}", "_kombu.fanout.{}.{}/{}", "celeryev"

#: The priority of a message of priority 0, as of a plain QPUSH: Holdfast's best is 1, AMQP's is 9. And
#: how many messages a consumer without a limit gets at once.
LEAST, UNLIMITED = 128, 100

#: Milliseconds: how long a claim waits, how long a push is known, and what a queue without consumers
#: has to live if it may go with them. The server keeps moments until LATEST.
BLOCK, WINDOW, LINGER, LATEST = 10_000, 60_000, 3_600_000, 4_398_046_511_103


class Line:
    """A connection to the server whose answers are read when they come. It comes back by itself.

    So Celery does not see that the server was away. It would forget which tasks it has begun, and they
    would run twice: here their claims go on.
    """

    def __init__(self, transport: Any, reader: Callable[[], object]):
        self._transport, self._reader = transport, reader
        self._connection: redis.Connection | None = None
        self._pause = self._again = 0.0  # seconds, and when to try again
        self.id = self._fd = 0  # what the server calls it, and the kernel
        self.sent: Any = None  # what it was asked for, and still does
        self.waits, self._since = False, 0.0  # an answer is to come; when it was asked for, or the last came

    def ready(self) -> bool:
        """Connects, unless it is connected, or it is too early for another try."""
        if self._connection is None and monotonic() >= self._again:
            connection, self.id = self._guard(self._transport.dial)
            self._connection, self._fd = connection, connection._sock.fileno()
            self._transport.watch(self._fd, self._reader)
            self._pause = 0.0
        return self._connection is not None

    def send(self, *args: Any) -> None:
        """Sends a command whose answer comes later."""
        self._guard(self._connection.send_command, *args)
        self.waits, self._since = True, monotonic()

    def read(self) -> Any:
        """Reads an answer."""
        self.waits, self._since = False, monotonic()
        return self._guard(self._connection.read_response)

    def has_answer(self, seconds: float) -> bool:
        """Waits for an answer, and says whether one has come."""
        return self._connection is not None and self._guard(self._connection.can_read, seconds)

    def check(self) -> None:
        """Gives the connection up if no answer has come in time, as a network loses them without a word.

        On one that waits for what is told, the server is asked for a sign of life.
        """
        quiet = monotonic() - self._since - BLOCK / 1000
        if self.waits and quiet > (self._connection.socket_timeout or 20):
            if self.has_answer(0):  # this process had no time for it
                self._reader()
            else:
                self.lose("it does not answer")
        elif self.sent and not self.waits and quiet > 0:
            self.send("PING")
            self._since -= BLOCK / 1000  # this is answered at once

    def _guard(self, call: Callable, *args: Any) -> Any:
        try:
            return call(*args)
        except (*LOST, redis.ResponseError) as error:  # a right that is missing may be given back
            self.lose(error)
            raise redis.ConnectionError(str(error)) from error

    def lose(self, why: Any) -> None:
        """Gives the connection up, to try again after a while."""
        if not self._pause:
            logger.warning("the server is out of reach, or refuses: %s. It is tried again until it answers", why)
        self.close()
        self._pause = min(2 * self._pause or 0.1, 5)
        self._again = monotonic() + self._pause

    def close(self) -> None:
        """Closes the connection."""
        connection, self._connection, self.sent, self.waits = self._connection, None, None, False
        if connection is not None and self._transport.pid == os.getpid():
            self._transport.forget(self._fd)
            connection.disconnect()


class QoS(virtual.QoS):
    """The messages that a channel has delivered, which are claims."""

    def append(self, message: Any, delivery_tag: Any) -> None:
        super().append(message, delivery_tag)
        self.channel.claims.delivered(delivery_tag, message)

    def ack(self, delivery_tag: Any) -> None:
        self.channel.claims.end([delivery_tag])
        super().ack(delivery_tag)
        # Celery's loop would ask after its next event, and there may be none for a second.
        if self.channel.transport.loop is not None and not self.channel.closed:
            self.channel.ask()

    def reject(self, delivery_tag: Any, requeue: bool = False) -> None:
        self.channel.claims.end([delivery_tag], *(REQUEUED if requeue else REJECTED), wait=True)
        self.ack(delivery_tag)

    def restore_unacked(self) -> None:
        """Gives back all at once; those of a connection that is lost stay with who works on them."""
        self._flush()
        tags = list(self._delivered)
        self._delivered.clear()
        if self.channel.transport.lost:
            self.channel.claims.forgotten = True
        else:
            self.channel.claims.end(tags, *UNTOUCHED, wait=True)

    def restore_unacked_once(self, stderr: Any = None) -> None:
        self._on_collect.cancel()
        self.restore_unacked()


class Channel(virtual.Channel):
    """A channel: it has a connection for claims and one for what is told to all, if it consumes."""

    QoS = QoS
    supports_fanout = True
    queue_order_strategy = "round_robin"
    from_transport_options = virtual.Channel.from_transport_options + ("queue_order_strategy",)

    def __init__(self, connection: Any, **kwargs: Any):
        super().__init__(connection, **kwargs)
        self.transport = connection  # also when the channel is closed: messages end later
        self.claims = connection.claims
        self._order = cycle_by_name(self.queue_order_strategy)()
        self._no_ack: set[str] = set()
        self._mute = 0.0  # until then no events are told
        self._inbox: deque[tuple[str, dict]] = deque()
        self._claimer = Line(connection, self._take)
        self._listener = Line(connection, self._told)  # asked for patterns
        self._patterns: dict[str, list[str]] = {}  # what it shall be asked for, and their queues

    # Publishing.

    def encode_body(self, body: Any, encoding: str | None = None) -> tuple:
        # Text needs no base64, and people see it on the server's page.
        return (body, None) if isinstance(body, str) else super().encode_body(body, encoding)

    def _put(self, queue: str, message: dict, **kwargs: Any) -> None:
        properties, headers = message["properties"], message["headers"]
        # kombu publishes again with the same properties after a lost connection: it is pushed once.
        unique, first = properties.setdefault("push_id", (uuid4().hex, monotonic()))
        if monotonic() - first > WINDOW / 1000 - 10:
            raise OperationalError(f"a push to {queue} has had no answer for 50 s: look whether it is there")
        priority = LEAST - self._get_message_priority(message)
        args = ["QPUSH", queue, dumps(message), "PRIO", priority, "UNIQUE", unique, "WINDOW", WINDOW]
        if (due := _unix_ms(headers.get("eta"))) is not None:
            args += ["AT", min(max(due, 0), LATEST)]
        # A worker of Celery reports a task that has expired, so it must get it.
        if properties.get("expiration") and not headers.get("expires"):
            args += ["TTL", max(1, int(properties["expiration"]))]
        self.transport.call(*args)

    def _put_fanout(self, exchange: str, message: dict, routing_key: str, **kwargs: Any) -> None:
        if exchange == EVENTS and monotonic() < self._mute:
            return
        channel = FANOUT.format(self.transport.database, exchange, routing_key or "")
        try:
            self.transport.call("PUBLISH", channel, dumps(message))
        except LOST:
            if exchange != EVENTS:
                raise
            self._mute = monotonic() + 10  # kombu would try again without end, and hold the worker up

    # Queues and exchanges.

    prepare_queue_arguments = staticmethod(to_rabbitmq_queue_arguments)

    def _new_queue(self, queue: str, arguments: dict | None = None, **kwargs: Any) -> None:
        expires = int((arguments or {}).get("x-expires") or 0)
        goes = kwargs.get("auto_delete") or kwargs.get("exclusive")
        # A claim waits this long until its queue is kept anew.
        self.transport.queues[queue] = max(expires, 3 * BLOCK) if expires else LINGER if goes else 0

    def _has_queue(self, queue: str, **kwargs: Any) -> bool:
        return queue in self.transport.queues or bool(self.transport.call("EXISTS", queue))

    def _keep(self, queue: str) -> None:
        """Makes a queue that goes by itself, or has it stay for some time more."""
        if (lifetime := self.transport.queues.get(queue)) and self.transport.call("PTTL", queue) < lifetime / 2:
            self.transport.call("QSET", queue, "max-attempts", 0)
            self.transport.call("PEXPIRE", queue, lifetime)

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        if self.typeof(exchange).type == "fanout":
            self.transport.fanout[queue] = (exchange, routing_key)
            return
        self._keep(queue)
        self.transport.call("HSET", BINDINGS.format(exchange), _field(routing_key, pattern, queue),
                            int(bool(self.transport.queues.get(queue))))

    def get_table(self, exchange: str) -> list[tuple]:
        """The bindings of an exchange, of all processes."""
        name, table = BINDINGS.format(exchange), []
        for field, temporary in self.transport.call("HGETALL", name).items():
            binding = tuple(loads(field))
            if int(temporary) and not self.transport.call("EXISTS", binding[2]):
                self.transport.call("HDEL", name, field)  # its queue went by itself
            else:
                table.append(binding)
        return table

    def queue_unbind(self, queue: str, exchange: str | None = None, routing_key: str = "",
                     arguments: dict | None = None, **kwargs: Any) -> None:
        self.state.binding_delete(queue, exchange, routing_key)
        binding = self.typeof(exchange).prepare_bind(queue, exchange, routing_key, arguments)
        self.transport.call("HDEL", BINDINGS.format(exchange), _field(*binding))

    def queue_delete(self, queue: str, if_unused: bool = False, if_empty: bool = False, **_: Any) -> None:
        if if_empty and self._size(queue):
            return
        for exchange, routing_key, arguments in list(self.state.queue_bindings(queue)):
            self.queue_unbind(queue, exchange, routing_key, arguments)
        self.transport.queues.pop(queue, None)
        self.transport.fanout.pop(queue, None)
        self.transport.call("DEL", queue)

    def _size(self, queue: str) -> int:
        return self.transport.call("LLEN", queue)

    def _purge(self, queue: str) -> int:
        # What waits for its time waits, too; what is claimed is being worked on.
        return sum(self.transport.call("QPURGE", queue, "STATE", state) for state in ("ready", "delayed"))

    # Consuming.

    def basic_consume(self, queue: str, no_ack: bool, *args: Any, **kwargs: Any) -> None:
        super().basic_consume(queue, no_ack, *args, **kwargs)
        if no_ack:
            self._no_ack.add(queue)
        self._consumers_changed()

    def basic_cancel(self, consumer_tag: str) -> None:
        self._no_ack.discard(self._tag_to_queue.get(consumer_tag))
        super().basic_cancel(consumer_tag)
        self._consumers_changed()

    def _consumers_changed(self) -> None:
        fanout = self.transport.fanout
        # A queue may have several consumers, and a claim names each once.
        self._order.update(queue for queue in dict.fromkeys(self._active_queues) if queue not in fanout)
        self._patterns = {}
        for queue in self._active_queues:
            if queue in fanout:
                # As with kombu's Redis transport a key is a pattern, and without one all comes.
                key = escape(fanout[queue][1]).replace("[*]", "*").replace("#", "*") or "*"
                pattern = FANOUT.format(self.transport.database, escape(fanout[queue][0]), key)
                self._patterns.setdefault(pattern, []).append(queue)
        if self.transport.lost:
            return
        with suppress(LOST):  # the server gives back what it has claimed, after the lease
            self._listen()
            while self._claimer.waits:  # a claim waits: for other queues a new one is made
                self.transport.call("CLIENT UNBLOCK", self._claimer.id)
                if self._claimer.has_answer(0.05):  # else it was not at the server yet
                    self._take()
                self._claimer.check()
        gone = [item for item in self._inbox if item[0] not in self._active_queues]
        self._inbox = deque(item for item in self._inbox if item not in gone)
        tags = [message["properties"]["delivery_tag"] for _, message in gone]
        self.claims.end(tags, *UNTOUCHED, wait=True)

    def basic_get(self, queue: str, no_ack: bool = False, **kwargs: Any) -> Any:
        message = super().basic_get(queue, no_ack, **kwargs)
        self.claims.end([message.delivery_tag] if message and no_ack else ())
        return message

    def _get(self, queue: str, timeout: float | None = None) -> dict:
        while True:
            packets = self.transport.call("QCLAIM", queue, "LEASE", self.claims.lease)
            if not packets:
                raise Empty()
            for _, message in self._received(packets[0]):
                return message

    def ask(self) -> None:
        """Asks for what this channel consumes, unless it has asked already."""
        with suppress(LOST):  # it is tried again
            self._listen()
            self._listener.check()
            self._claimer.check()
            queues = self._order.consume(len(self._order.items))
            if queues and not self._claimer.waits and self.qos.can_consume() and self._claimer.ready():
                for queue in queues:
                    self._keep(queue)
                count = min(self.qos.can_consume_max_estimate() or UNLIMITED, 1000)
                names = [arg for queue in queues for arg in ("OR", queue)][1:]
                self._claimer.send("QCLAIM", *names, "COUNT", count,
                                   "LEASE", self.claims.lease, "BLOCK", BLOCK)

    def _take(self) -> None:
        for packet in self._claimer.read() or ():
            self._inbox.extend(self._received(packet))

    def _received(self, packet: list) -> list[tuple[str, dict]]:
        """Holds a claim, and gives its queue and message as kombu has them, if it is one of kombu's."""
        fields = dict(zip(packet[::2], packet[1::2]))
        queue, token = fields[b"queue"].decode(), fields[b"token"]
        self.claims.add(queue, int(fields[b"id"]), token)
        try:
            message = loads(fields[b"payload"])
            properties = message["properties"]
            properties.pop("push_id", None)
            properties["delivery_tag"] = token
            properties["delivery_info"]["redelivered"] = fields[b"attempt"] > 1 or b"reason" in fields
        except (ValueError, TypeError, KeyError):
            logger.error("packet %s of the queue %s is no message of kombu: it is dead now",
                         fields[b"id"].decode(), queue)
            self.claims.end([token], "DEAD", "REASON", "no message of kombu")
            return []
        return [(queue, message)]

    def deliver(self) -> bool:
        """Gives what has come to its consumers, and says whether anything was there.

        What is left when a consumer raises is delivered the next time.
        """
        any_came = bool(self._inbox)
        while self._inbox:
            queue, message = self._inbox.popleft()
            tag = message["properties"]["delivery_tag"]
            if tag not in self.claims.held:
                continue  # the lease has ended while others were delivered, and another works on it
            if queue in self._no_ack:
                self.claims.end([tag])
            self._order.rotate(queue)
            self.transport._deliver(message, queue)
        return any_came

    # What is told to all.

    def _listen(self) -> None:
        heard = self._listener.sent or set()
        for command, patterns in (("PSUBSCRIBE", self._patterns.keys() - heard),
                                  ("PUNSUBSCRIBE", heard - self._patterns.keys())):
            if patterns and self._listener.ready():
                self._listener.send(command, *patterns)
                self._listener.sent = heard = heard ^ patterns

    def _told(self) -> bool:
        while True:
            reply = self._listener.read()
            if reply[0] == b"pmessage":
                try:
                    message = loads(reply[3])
                except ValueError:
                    logger.error("a message of %r is no message of kombu", reply[2])
                    message = None
                for queue in self._patterns.get(reply[1].decode(), ()) if message else ():
                    self.transport._deliver(message, queue)
            # What has been read into memory wakes nobody.
            if not self._listener.has_answer(0):
                return True

    def close(self) -> None:
        super().close()
        self._claimer.close()
        self._listener.close()


def _field(routing_key: str, pattern: str | None, queue: str) -> str:
    return dumps([routing_key or "", pattern or "", queue])


def _unix_ms(moment: Any) -> int | None:
    """The moment of a header eta, in milliseconds, or None if there is none that can be read."""
    try:
        when = datetime.fromisoformat(moment.replace("Z", "+00:00"))
    except (AttributeError, ValueError):
        return None  # Celery's worker says what is wrong with it
    return int((when if when.tzinfo else when.replace(tzinfo=timezone.utc)).timestamp() * 1000)
