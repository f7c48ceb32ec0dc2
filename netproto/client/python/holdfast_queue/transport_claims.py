"""The claims behind the messages that a connection of kombu has delivered."""
from __future__ import annotations

import atexit
import gc
import os
import threading
import weakref
from time import monotonic
from typing import Any, Iterable

import redis
from kombu.log import get_logger

logger = get_logger("holdfast_queue.transport")

#: What a lost connection raises. What was sent may have been done, or not.
LOST = (redis.ConnectionError, redis.TimeoutError, OSError)

#: How QNACK returns a message that was not worked on: at once, and it was no attempt. One that has
#: failed: it may kill who works on it, so it counts, and waits longer each time. And one that nobody
#: shall work on.
UNTOUCHED, REQUEUED = ("DELAY", 0, "UNCOUNTED", "REASON", "given back"), ("REASON", "requeued")
REJECTED = ("DEAD", "REASON", "rejected")

_all: weakref.WeakSet = weakref.WeakSet()


def pipeline(client: redis.Redis, calls: list[tuple], transaction: bool = False) -> list:
    """Sends commands together. What the server refuses of them is raised if they are a transaction."""
    with client.pipeline(transaction) as pipe:
        for call in calls:
            pipe.execute_command(*call)
        return pipe.execute(raise_on_error=transaction)


@atexit.register
def _send_what_ended() -> None:
    for claims in list(_all):
        claims.end((), wait=True)


class Claims:
    """Holds claims, extends them in a thread, and ends them.

    The end of a claim is sent by the thread, many at once, and again until the server answers: a claim is
    good across a restart of the server, and so is its end. As in AMQP nobody waits for an acknowledgement.
    """

    def __init__(self, client: redis.Redis, lease: float):
        self._client = client
        self.lease = max(3, int(lease * 1000))  # milliseconds
        self.held: dict[int, tuple[str, int]] = {}  # queues and ids, by tokens
        self._messages: dict[int, weakref.ref] = {}
        self._ended: list[tuple[int, str, int, tuple]] = []
        self._sending = self._lost = False  # ends are on their way; the last call did not reach the server
        self.forgotten = False  # messages may be in cycles that nobody has
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        _all.add(self)

    def add(self, queue: str, id: int, token: int) -> None:
        """Holds a claim from now on."""
        with self._changed:
            self.held[token] = queue, id
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="holdfast-claims", daemon=True)
                self._thread.start()

    def delivered(self, token: int, message: Any) -> None:
        """Gives a claim back once nobody has its message any more.

        So it is with a connection that Celery gives up: its tasks go on, and end by their claims. What has
        not begun it forgets.
        """
        if token in self.held:
            self._messages[token] = weakref.ref(message)

    def end(self, tokens: Iterable[int], *how: Any, wait: bool = False) -> None:
        """Acknowledges claims, or returns them by options of QNACK.

        With wait it comes back when the server knows of all that has ended, or is out of reach.
        """
        if self._pid != os.getpid():
            return  # they are of the process that forked this one
        with self._changed:
            for token in tokens:
                self._messages.pop(token, None)
                if token in self.held:  # else its lease has ended
                    self._ended.append((token, *self.held.pop(token), how))
            self._changed.notify_all()
            end = monotonic() + 5
            while wait and (self._ended or self._sending) and not self._lost and monotonic() < end:
                self._changed.wait(end - monotonic())

    def _run(self) -> None:
        sixth = self.lease / 6000  # seconds
        extend, idle = monotonic() + sixth, False
        while True:
            with self._changed:
                if not self.held and not self._ended and idle:
                    self._thread = None
                    return
                idle = not self.held and not self._ended
                if self._lost:
                    self._changed.wait(min(1, sixth))
                elif not self._ended:
                    self._changed.wait(max(0, extend - monotonic()))
                ended, self._ended = self._ended, []
                self._sending = bool(ended)
            try:
                self._send(ended)
                ended, lost = [], False
                if monotonic() >= extend:
                    self._extend()
                    extend = monotonic() + sixth
            except Exception as error:
                lost = True
                if not self._lost:
                    logger.warning("claims are neither extended nor ended, and are tried again: %s", error)
            with self._changed:
                self._ended[:0] = ended
                self._lost, self._sending = lost, False
                self._changed.notify_all()

    def _send(self, ended: list[tuple[int, str, int, tuple]]) -> None:
        calls = [("QNACK", queue, id, token, *how) if how else ("QACK", queue, id, token)
                 for token, queue, id, how in ended]
        for call, reply in zip(calls, pipeline(self._client, calls)):
            # A claim that has ended was told of when it was not extended, or its end is sent again.
            if isinstance(reply, Exception) and not str(reply).startswith("STALE"):
                logger.error("%s of the queue %s: %s", call[0], call[1], reply)

    def _extend(self) -> None:
        if self.forgotten:
            self.forgotten = False
            gc.collect()
        gone = [token for token, message in list(self._messages.items()) if message() is None]
        self.end(gone, *UNTOUCHED)
        with self._changed:
            held = list(self.held.items())
        calls = [("QEXTEND", queue, id, token, self.lease) for token, (queue, id) in held]
        for (token, (queue, id)), reply in zip(held, pipeline(self._client, calls)):
            # Another refusal may be over the next time, as of a right. And an end may have come meanwhile.
            if str(reply).startswith(("STALE", "CANCELLED")) and self.held.pop(token, None):
                logger.warning("the claim of packet %d of the queue %s: %s", id, queue, reply)
