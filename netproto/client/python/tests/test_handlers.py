"""What becomes of packets whose handlers fail, and of those that would not run."""

import asyncio
import logging
import time
import unittest
from datetime import timedelta
from typing import Any
from unittest import mock

import holdfast_queue as hf
from holdfast_queue import consume
from tests import workers
from tests.workers import Called


class Untold(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


class Wordy(Exception):
    """One with words, which are no verdict."""

    def __init__(self, words: Any) -> None:
        super().__init__(words)
        self.words = words


class SilentlyDead(hf.Dead):
    def __init__(self) -> None:
        pass


class Faceless(Exception):
    @property
    def __class__(self) -> Any:
        raise SystemExit(3)


class NamelessClass(type):
    @property
    def __name__(cls) -> Any:
        raise SystemExit(3)


class Nameless(Exception, metaclass=NamelessClass):
    pass


class Wordless(hf.Dead):
    @property
    def _words(self) -> Any:
        raise SystemExit(3)

    @_words.setter
    def _words(self, words: Any) -> None:
        pass


class Mute(str):
    def encode(self, *args: Any, **options: Any) -> Any:
        raise SystemExit(3)


def yields(packet: Any) -> Any:
    yield


async def yields_later(packet: Any) -> Any:
    yield


async def later(packet: Any) -> None:
    pass


class Handlers:
    """What holds for handlers of each client."""

    unrun: Any

    def test_an_exception_says_what_becomes_of_the_packet(self) -> None:
        self.looks.set(self.queue, {"backoff-min": 3600, "backoff-max": timedelta(hours=1)})
        ends = {
            b"plain": (ValueError("no such address"), "delayed", 1, "ValueError: no such address"),
            b"dead": (hf.Dead("for good"), "dead", 1, "for good"),
            b"in": (hf.RetryIn(7200, KeyError("x")), "delayed", 1, "KeyError: 'x'"),
            b"snooze": (hf.Snooze(60), "delayed", 0, "snoozed for 60 s"),
            b"snooze long": (hf.Snooze(timedelta(minutes=2)), "delayed", 0, "snoozed for 120.0 s"),
            b"uncounted": (hf.Uncounted(60, OSError("busy")), "delayed", 0, "OSError: busy"),
            b"exit": (SystemExit(3), "delayed", 1, "SystemExit: 3"),
            b"interrupt": (KeyboardInterrupt(), "delayed", 1, "KeyboardInterrupt: "),
            b"cancel": (asyncio.CancelledError(), "delayed", 1, "CancelledError: "),
            b"text": (Untold(), "delayed", 1, "Untold"),
            b"faceless": (Faceless("x"), "delayed", 1, "Faceless"),
            b"nameless": (Nameless("x"), "delayed", 1, "Nameless"),
            b"wordless": (Wordless("x"), "delayed", 1, "x"),
            b"mute": (hf.Verdict(Mute("x"), Mute("DEAD")), "dead", 1, "x"),
            b"words": (Wordy(None), "delayed", 1, "Wordy: None"),
            b"dead words": (Wordy(["DEAD"]), "delayed", 1, "Wordy: ['DEAD']"),
            b"silent": (SilentlyDead(), "delayed", 1, ""),
            b"too long": (hf.Snooze(1e15), "delayed", 1, "snoozed for 1000000000000000.0 s"),
            b"odd": (hf.Verdict("odd", None), "delayed", 1, "odd"),
        }

        def fail(p: hf.Packet) -> None:
            raise ends[p.payload][0]

        ids = dict(zip(ends, self.looks.push_batch(self.queue, list(ends))))
        self.running(fail, concurrency=3)
        for payload, (_, state, attempt, reason) in ends.items():
            p = self.until(lambda: (p := self.show(ids[payload])).state not in ("ready", "claimed") and p)
            self.assertEqual((p.state, p.attempt, p.reason), (state, attempt, reason))

    def test_what_a_handler_says_on_purpose_has_no_traceback(self) -> None:
        ends = {b"dead": hf.Dead("no address"), b"in": hf.RetryIn(3600, "busy"), b"hold": hf.Hold(0), b"bad": ValueError("bad")}
        logged: list[logging.LogRecord] = []

        def fail(p: hf.Packet) -> None:
            if p.attempt == 1 and p.payload not in done:
                done.add(p.payload)
                raise ends[p.payload]

        done: set[bytes] = set()
        keeps = logging.Handler()
        keeps.emit = logged.append  # type: ignore[method-assign]
        consume.log.addHandler(keeps)
        self.addCleanup(consume.log.removeHandler, keeps)
        self.looks.push_batch(self.queue, list(ends))
        with mock.patch.object(consume.log, "disabled", False), mock.patch.object(consume.log, "propagate", False):
            running = self.running(fail)
            self.until(lambda: done == set(ends) and self.looks.stats(self.queue)["acked"])
            running.shutdown()
        self.assertEqual([r.exc_info is not None for r in logged], [False, False, True])
        self.assertIn("no address", logged[0].getMessage())

    def test_a_cost_that_is_refused_is_left_out(self) -> None:
        def work(p: hf.Packet) -> None:
            p.cost = None if p.payload == b"none" else 1 << 40

        self.looks.push_batch(self.queue, ["none", "big"])
        self.running(work)
        self.until(lambda: self.looks.stats(self.queue)["acked"] == 2)

    def test_a_log_that_fails_ends_no_worker(self) -> None:
        class Fails(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                raise OSError("the disk of the log is full")

        def work(p: hf.Packet) -> None:
            if p.payload == b"bad":
                raise ValueError

        fails = Fails()
        consume.log.addHandler(fails)
        self.addCleanup(consume.log.removeHandler, fails)
        self.looks.set(self.queue, {"max-attempts": 1})
        self.looks.push_batch(self.queue, ["bad", "good"])
        with mock.patch.object(consume.log, "disabled", False):
            running = self.running(work)
            self.until(lambda: self.looks.stats(self.queue)["acked"] == 1)
            running.shutdown()
        self.assertEqual(self.looks.stats(self.queue)["dead"], 1)

    def test_a_part_of_the_worker_that_fails_ends_it_and_returns_its_packets(self) -> None:
        for part in ("_renew", "_answer"):

            async def fail(engine: consume.Engine) -> None:
                while not engine.held:
                    await asyncio.sleep(0.005)
                raise ZeroDivisionError(part)

            id, ended = self.looks.push(self.queue, "x"), []
            with mock.patch.object(consume.Engine, part, fail):
                running = self.running(self.hang(ended))
                with self.assertRaisesRegex(ZeroDivisionError, part):
                    running.join()
            p = self.show(id)
            self.assertEqual((p.state, p.attempt, p.reason), ("ready", 0, "the worker was shut down"))
            self.until(lambda: ended)
            self.looks.purge(self.queue)

    def test_a_worker_whose_threads_are_refused_ends(self) -> None:
        with mock.patch.object(self.client()._runner, "open", side_effect=RuntimeError("can't start new thread")):
            with self.assertRaisesRegex(RuntimeError, "new thread"):
                self.running(print).join()
        with self.assertRaisesRegex(hf.Invalid, "concurrency"):
            self.running(print, concurrency=2.0).join()

    def test_a_handler_that_would_not_run_is_refused(self) -> None:
        client = self.client()
        with self.assertRaisesRegex(TypeError, "has not run"):
            client.worker(self.queue)(None)
        for handler in self.unrun:
            with self.assertRaisesRegex(TypeError, "has not run"):
                client.worker(self.queue)(handler)
            with self.assertRaisesRegex(TypeError, "has not run"):
                self.running(handler).join()

    def test_a_handler_whose_result_has_not_run_returns_its_packet(self) -> None:
        self.looks.set(self.queue, {"max-attempts": 1})
        for handler in self.unrun:
            id = self.looks.push(self.queue, "x")
            running = self.start(self.client(), self.queue, Called(handler))
            p = self.until(lambda: (p := self.show(id)).state == "dead" and p)
            self.assertIn("TypeError: the handler has not run", p.reason)
            running.shutdown()


class InThreads(Handlers, workers.InThreads):
    unrun = (yields, yields_later, later)


class InTasks(Handlers, workers.InTasks):
    unrun = (yields, yields_later)

    def test_an_event_loop_that_a_handler_blocks_is_named(self) -> None:
        async def work(p: hf.Packet) -> None:
            end = time.monotonic() + 0.5
            while time.monotonic() < end:  # a time.sleep, or work of the processor
                pass

        self.looks.push(self.queue, "x")
        with mock.patch.object(consume.log, "disabled", False), self.assertLogs(consume.log) as logs:
            running = self.running(work, lease=0.6)
            self.until(lambda: any("blocked" in line for line in logs.output))
            running.shutdown()
        self.assertRegex("".join(logs.output), r"the event loop was blocked for \d\.\d s; leases of 0\.6 s cannot be renewed")

    def test_a_function_that_does_not_wait_is_a_handler_too(self) -> None:
        seen: list[bytes] = []
        self.looks.push(self.queue, "x")
        running = self.start(self.client(), self.queue, Called(lambda p: seen.append(p.payload)))
        self.until(lambda: self.gone("x"))
        running.shutdown()
        self.assertEqual((seen, self.looks.stats(self.queue)["acked"]), ([b"x"], 1))


if __name__ == "__main__":
    unittest.main()
