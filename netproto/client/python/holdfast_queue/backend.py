"""A result backend of Celery: results are strings of the server, which end by themselves.

    app = Celery(broker="holdfast://…", backend="holdfast://user:password@host:port/database")

holdfasts:// is by TLS. The options of TLS are in the address, as redis-py has them. How often the server
is tried is retry_policy of result_backend_transport_options. A result has at most 1 MiB.
"""
from __future__ import annotations

import threading
import time
from typing import Any, Iterable, Iterator

import redis
from celery import states
from celery.backends.base import KeyValueStoreBackend
from celery.exceptions import BackendStoreError, TimeoutError
from kombu.utils.functional import retry_over_time
from kombu.utils.objects import cached_property

from .transport_claims import LOST, pipeline

#: The most bytes of a string.
LONGEST = 1 << 20


class HoldfastBackend(KeyValueStoreBackend):
    """Stores results, tells who waits for one, and counts the parts of a chord."""

    supports_autoexpire = supports_native_join = implements_incr = persistent = True

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._part = threading.local()
        options = self.app.conf.result_backend_transport_options or {}
        self._policy = {"max_retries": 20, "interval_start": 0, "interval_step": 1, "interval_max": 1,
                        **options.get("retry_policy", {})}

    @cached_property
    def client(self) -> redis.Redis:
        """The connections to the server."""
        address = self.url.replace("holdfast", "redis", 1)
        return redis.Redis.from_url(address, socket_connect_timeout=5, socket_timeout=5, socket_keepalive=True)

    def _again(self, call: Any, *args: Any, seconds: float | None = None) -> Any:
        """Makes a call until the server takes it: its disk may be full. Each of them may be made twice."""
        return retry_over_time(call, (*LOST, redis.exceptions.ExecAbortError), args, timeout=seconds, **self._policy)

    def get(self, key: bytes) -> bytes | None:
        return self._again(self.client.get, key)

    def delete(self, key: bytes) -> None:
        self._again(self.client.delete, key)

    def expire(self, key: bytes, value: float | None) -> None:
        if value:
            self._again(self.client.expire, key, int(value))

    def set(self, key: bytes, value: str | bytes) -> None:
        self._set_with_state(key, value, None)

    def _set_with_state(self, key: bytes, value: str | bytes, state: str | None) -> None:
        value = value.encode() if isinstance(value, str) else value
        if len(value) > LONGEST:
            raise BackendStoreError(f"the result has {len(value)} bytes, and a string at most {LONGEST}: "
                                    "return less, or where it is stored")
        commands = [("SET", key, value) + (("EX", int(self.expires)) if self.expires else ())]
        if state in states.READY_STATES:
            commands.append(("PUBLISH", key, ""))
        self._again(pipeline, self.client, commands, True)

    # A chord. A part that runs twice, as its worker died before it was acknowledged, counts once: the
    # parts are the fields of a hash.

    def on_chord_part_return(self, request: Any, state: str, result: Any, **kwargs: Any) -> None:
        self._part.id = request.id
        if self.restore_group(request.group) is not None:  # else the chord has been joined
            super().on_chord_part_return(request, state, result, **kwargs)

    def incr(self, key: bytes) -> int:
        """Counts a part of a chord, and says how many there are."""
        return self._again(pipeline, self.client, [("HSET", key, self._part.id, 1), ("HLEN", key)], True)[1]

    # Waiting.

    def wait_for(self, task_id: str, *args: Any, **kwargs: Any) -> dict:
        return next(self.get_many([task_id], *args, **kwargs))[1]

    def get_many(self, task_ids: Iterable[str], timeout: float | None = None, interval: float | None = 0.5,
                 no_ack: bool = True, on_message: Any = None, on_interval: Any = None,
                 max_iterations: int | None = None, **kwargs: Any) -> Iterator[tuple[str, dict]]:
        """Gives ids and results as they become ready. The server tells when; who hears nothing looks
        again each interval."""
        waiting = {self.get_key_for_task(i): i for i in task_ids}
        end = time.monotonic() + timeout if timeout else float("inf")
        look = list(waiting)
        with self.client.pubsub() as told:
            while True:
                left = end - time.monotonic()
                for key, value in zip(look, self._again(self.client.mget, look, seconds=left) if look else ()):
                    meta = value and self.decode_result(value)
                    if meta and meta["status"] in states.READY_STATES:
                        task_id = waiting.pop(key)
                        self._cache[task_id] = meta
                        if on_message is not None:
                            on_message(meta)
                        yield task_id, meta
                if not waiting:
                    return
                if (left := min(interval or 0.5, end - time.monotonic())) <= 0:
                    raise TimeoutError(f"no result within {timeout} s")
                if on_interval:
                    on_interval()
                look = self._heard(told, waiting, left)

    def _heard(self, told: Any, waiting: dict, seconds: float) -> list[bytes]:
        """Waits until results are told, and gives their keys; or all, if none was."""
        try:
            if not told.subscribed:
                told.subscribe(*waiting)
                return list(waiting)  # what became ready before is told to nobody
            keys, message = set(), told.get_message(timeout=seconds)
            while message is not None:
                keys.add(message["channel"])  # a result may be told twice
                message = told.get_message()
            return list(keys & waiting.keys() or waiting)
        except LOST:
            time.sleep(seconds)
            return list(waiting)
