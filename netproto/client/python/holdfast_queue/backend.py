"""A result backend of Celery: results are strings of the server, which end by themselves.

    app = Celery(broker="holdfast://…", backend="holdfast://user:password@host:port/database")

holdfasts:// is by TLS. The options of TLS are in the address, as redis-py has them. How often the server
is tried is retry_policy of result_backend_transport_options. A result has at most 1 MiB.
"""
from __future__ import annotations

import time
from typing import Any, Iterable, Iterator

import redis
from celery import states
from celery.backends.base import KeyValueStoreBackend
from celery.canvas import maybe_signature
from celery.exceptions import BackendStoreError, ChordError, TimeoutError
from celery.result import GroupResult, allow_join_result
from celery.utils.functional import _regen
from kombu.log import get_logger
from kombu.utils.functional import retry_over_time
from kombu.utils.objects import cached_property

from .transport_claims import LOST, pipeline

logger = get_logger("holdfast_queue.backend")

#: The most bytes of a string, and of a field.
LONGEST = 1 << 20


def _bounded(value: str | bytes) -> bytes:
    value = value.encode() if isinstance(value, str) else value
    if len(value) > LONGEST:
        raise BackendStoreError(f"the result has {len(value)} bytes, and a string at most {LONGEST}: "
                                "return less, or where it is stored")
    return value


class HoldfastBackend(KeyValueStoreBackend):
    """Stores results, tells who waits for one, and counts the parts of a chord."""

    supports_autoexpire = supports_native_join = persistent = True

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
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
        times = [t for t in (seconds, self._policy.get("timeout")) if t is not None]
        policy = {**self._policy, "timeout": min(times, default=None)}
        return retry_over_time(call, (*LOST, redis.exceptions.ExecAbortError), args, **policy)

    def get(self, key: bytes) -> bytes | None:
        return self._again(self.client.get, key)

    def delete(self, key: bytes) -> None:
        self._again(self.client.delete, key)

    def set(self, key: bytes, value: str | bytes) -> None:
        self._set_with_state(key, value, None)

    def _set_with_state(self, key: bytes, value: str | bytes, state: str | None) -> None:
        commands = [("SET", key, _bounded(value)) + (("EX", int(self.expires)) if self.expires else ())]
        if state in states.READY_STATES:
            commands.append(("PUBLISH", key, ""))
        self._again(pipeline, self.client, commands, True)

    # A chord. Its parts are the fields of a hash: one that runs twice, as its worker died before it was
    # acknowledged, counts once. How many there are is known when the last is sent.

    def apply_chord(self, header_result_args: tuple, body: Any, **kwargs: Any) -> None:
        """Keeps how the parts are nested, if they are. To look at those of a generator would end it."""
        self.ensure_chords_allowed()
        if not isinstance(header_result_args[1], _regen):
            header = self.app.GroupResult(*header_result_args)
            if any(isinstance(part, GroupResult) for part in header.results):
                header.save(backend=self)

    def set_chord_size(self, group_id: str, chord_size: int) -> None:
        self.set(self.get_key_for_group(group_id, ".s"), str(chord_size))

    def add_to_chord(self, chord_id: str, result: Any) -> None:
        self._keep_field(self.get_key_for_group(chord_id, ".t"), result.id, "")

    def _keep_field(self, key: bytes, field: str, value: str | bytes, *more: tuple) -> list:
        """Sets a field of a hash that goes with the results, and makes more calls in the same moment."""
        end = [("EXPIRE", key, int(self.expires))] if self.expires else []
        return self._again(pipeline, self.client, [("HSET", key, field, _bounded(value)), *more, *end], True)[1:]

    def on_chord_part_return(self, request: Any, state: str, result: Any, **kwargs: Any) -> None:
        if not request.group or not request.id:
            return
        keys = parts, added, size = [self.get_key_for_group(request.group, end) for end in (".j", ".t", ".s")]
        part = self.encode([request.group_index, request.id, state, self.encode_result(result, state)])
        looks = ("HLEN", parts), ("HLEN", added), ("GET", size)
        ended, more, sent, *_ = self._keep_field(parts, request.id, part, *looks)
        if sent is None or ended != int(sent) + more:
            return  # others have to end, or the chord has been joined
        callback, failed = maybe_signature(request.chord, app=self.app), "Join"
        try:
            joined = self._join(request.group, parts)
            failed = "Callback"
            callback.delay(joined)
        except Exception as error:
            logger.exception("Chord %r raised: %r", request.group, error)
            error = error if isinstance(error, ChordError) else ChordError(f"{failed} error: {error!r}")
            self.chord_error_from_stack(callback, error)
        finally:
            self._again(self.client.delete, *keys)

    def _join(self, group_id: str, key: bytes) -> list:
        """The results of a chord's parts, nested as these were."""
        if (header := GroupResult.restore(group_id, backend=self, app=self.app)) is not None:
            header.on_ready()
            with allow_join_result():
                return header.join_native(timeout=self.app.conf.result_chord_join_timeout, propagate=True)
        parts = [self.decode(part) for part in self._again(self.client.hvals, key)]
        parts.sort(key=lambda part: float("inf") if part[0] is None else part[0])
        for _, task_id, state, result in parts:
            if state in states.EXCEPTION_STATES:
                raise ChordError(f"Dependency {task_id} raised {self.exception_to_python(result)!r}")
        return [result for *_, result in parts]

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
                found = self._again(self.client.mget, look, seconds=left) if look else ()
                if on_interval:
                    on_interval()  # Celery's raises the error of what came before, which says more
                for key, value in zip(look, found):
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
