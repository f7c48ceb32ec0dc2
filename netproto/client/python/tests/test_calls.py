"""The calls of both clients, with replies of RESP2 and of RESP3."""

import asyncio
import gc
import inspect
import math
import threading
import unittest
from datetime import datetime, timedelta, timezone
from typing import Any
from unittest import mock

import holdfast_queue as hf
from holdfast_queue import requests
from holdfast_queue.errors import reason, refusal
from redis import exceptions
from tests import resp3
from tests.silent import SilentProxy
from tests.support import LIMIT, URL, Case, Proxy, Says, Waits, name


class Calls:
    """What holds for each client: `self.client` is one."""

    client: Any

    def claim(self, **options: Any) -> hf.Packet:
        [packet] = self.client.claim(self.queue, **options)
        return packet

    def test_a_claim_brings_all_that_was_pushed(self) -> None:
        payload = bytes(range(256))  # no UTF-8
        id = self.client.push(
            self.queue, payload, priority=7, key=b"k\xff", ttl=3600, tags={"size": "3", "to": "ann"},
            producer="shop", lease=7.5, meta=b"\xfe", unique="u1",
        )  # fmt: skip
        p = self.claim(consumer="w1")
        self.assertEqual(
            (p.id, p.queue, p.payload, p.priority, p.attempt, p.key, p.tags, p.producer, p.lease, p.meta, p.unique, p.consumer, p.state),
            (id, self.queue, payload, 7, 1, b"k\xff", {"size": "3", "to": "ann"}, "shop", 7.5, b"\xfe", "u1", "w1", "claimed"),
        )
        self.assertEqual(p.expires - p.enqueued, timedelta(hours=1))
        self.assertGreater(p.token, 0)
        self.assertLess(abs(p.lease_end - datetime.now(timezone.utc)), timedelta(minutes=1))

    def test_a_text_is_sent_as_utf_8(self) -> None:
        self.client.push(self.queue, "grüße")
        self.assertEqual(self.client.pop(self.queue)[0].payload.decode(), "grüße")

    def test_a_name_that_is_no_utf_8_goes_back_as_it_came(self) -> None:
        odd = self.queue.encode() + b"\xff"
        self.looks.redis.execute_command("QPUSH", odd, "x")
        [queue] = self.client.queues(self.queue + "*")
        self.assertEqual(self.client.pop(queue)[0].payload, b"x")

    def test_a_claim_ends_once(self) -> None:
        self.client.push(self.queue, "x")
        p = self.claim()
        self.client.extend(p, 60)
        self.client.progress(p, 40, "half")
        shown = self.client.show(self.queue, p.id)
        self.assertEqual((shown.progress, shown.progress_text), (40, "half"))
        self.assertEqual(self.client.ack(p), 1)
        self.assertTrue(p.answered)
        for call in (lambda: self.client.ack(p), lambda: self.client.extend(p, 1), lambda: self.client.nack(p)):
            self.assertRaises(hf.Stale, call)

    def test_many_are_acknowledged_at_once(self) -> None:
        self.assertEqual(len(self.client.push_batch(self.queue, [b"a", "b", b"c"])), 3)
        self.assertEqual(self.client.push_batch(self.queue, []), [])
        packets = self.client.claim(self.queue, count=10)
        self.assertEqual([p.payload for p in packets], [b"a", b"b", b"c"])
        self.client.nack(packets.pop())
        self.assertEqual(self.client.ack(*packets), 2)

    def test_a_return_says_what_becomes_of_the_packet(self) -> None:
        self.client.push(self.queue, "x")
        self.assertEqual(self.client.nack(self.claim(), hf.RetryIn(0, ValueError("no such address"))), "ready")
        p = self.client.show(self.queue, self.claim().id)
        self.client.harvest(self.queue)
        self.assertEqual(p.attempt, 2)
        self.assertEqual(self.client.nack(self.claim(), hf.Snooze(3600)), "delayed")
        self.client.reschedule(self.queue, p.id)
        p = self.claim()
        self.assertEqual(p.attempt, 3)
        self.assertEqual(self.client.nack(p, hf.Uncounted(why="not now")), "ready")
        p = self.claim()
        self.assertEqual(p.attempt, 3)
        self.assertEqual(self.client.nack(p, hf.Dead(KeyError("to"))), "dead")
        p = self.client.show(self.queue, p.id)
        self.assertEqual((p.reason, p.last_error_class, p.state), ("KeyError: 'to'", "KeyError", "dead"))
        self.client.redrive_packet(self.queue, p.id)
        self.assertRaises(hf.NoPacket, self.client.redrive_packet, self.queue, p.id)
        self.client.nack(self.claim(), hf.Hold(3600, "429"))
        self.assertTrue(self.client.stats(self.queue)["paused-out"])

    def test_a_unique_push_adds_nothing_twice(self) -> None:
        id, told = self.client.push_told(self.queue, "a", unique="u", until_claim=True, delay=3600)
        self.assertEqual(told, "new")
        self.assertEqual(self.client.push_told(self.queue, "b", unique="u"), (id, "delayed"))
        self.assertEqual(self.client.push(self.queue, "b", unique="u", replace=True, delay=0), id)
        self.assertEqual(self.claim().payload, b"b")
        self.assertNotEqual(self.client.push(self.queue, "c", unique="u", window=60), id)

    def test_a_take_selects(self) -> None:
        other = name()
        self.client.push(self.queue, "old", tags={"size": "9"})
        self.client.push(self.queue, "new", tags={"size": "10"})
        self.client.push(other, "other", at=datetime.now(timezone.utc) - timedelta(1))
        take = lambda **options: [p.payload for p in self.client.pop(self.queue, **options)]  # noqa: E731
        self.assertEqual(take(where=[("size", ">", "9"), ("size", "=", "1")], match_any=1), [b"new"])
        self.assertEqual(take(where=[("size", "<", "9")], others=[other]), [])
        self.assertEqual(take(newest=True), [b"old"])
        self.assertEqual(take(others=[other]), [b"other"])

    def test_a_time_is_seconds_or_a_timedelta(self) -> None:
        hour = timedelta(hours=1)
        for name in ("lease", "backoff-min", "backoff-max", "retain", "retain-dead", "alert-age"):
            for time in (0.2, hour, 3600):
                self.client.set(self.queue, {"backoff-max": 86400, "backoff-min": 0.001, name: time})
                self.assertEqual(self.client.get(self.queue)[name], 0.2 if time == 0.2 else 3600)
        id = self.client.push(self.queue, "x", delay=hour, ttl=2 * hour, unique="u", window=hour, block=hour)
        p = self.client.show(self.queue, id)
        self.assertAlmostEqual((p.not_before - p.enqueued) / hour, 1, places=3)
        self.client.reschedule_in(self.queue, id, timedelta())
        p = self.claim(lease=hour, block=hour, fill=timedelta(milliseconds=1), count=1)
        self.assertAlmostEqual((p.lease_end - datetime.now(timezone.utc)) / hour, 1, places=1)
        self.client.extend(p, 3 * hour)
        self.client.nack(p, hf.RetryIn(hour))
        p = self.client.show(self.queue, id)
        self.assertAlmostEqual((p.not_before - datetime.now(timezone.utc)) / hour, 1, places=1)

    def test_what_is_of_another_type_is_refused(self) -> None:
        push = lambda **options: self.client.push(self.queue, "x", **options)  # noqa: E731
        for call in (
            lambda: push(delay="60"), lambda: push(ttl=[1]), lambda: push(block="1"), lambda: self.claim(lease="60"),
            lambda: self.client.set(self.queue, {"lease": "60"}), lambda: hf.RetryIn("60"), lambda: hf.Hold("60"),
        ):  # fmt: skip
            self.assertRaisesRegex(TypeError, "expected seconds or a timedelta, not", call)
        for call in (
            lambda: push(at="tomorrow"), lambda: push(at=60), lambda: self.client.pause(self.queue, 60),
            lambda: self.client.reschedule(self.queue, "1", "tomorrow"),
        ):  # fmt: skip
            self.assertRaisesRegex(TypeError, "expected a datetime, not", call)
        for call in (
            lambda: self.client.push(self.queue, 42), lambda: self.client.push_batch(self.queue, ["x", {}]),
            lambda: self.client.push_told(self.queue, None), lambda: push(key=1), lambda: push(meta=1),
        ):  # fmt: skip
            self.assertRaisesRegex(TypeError, "expected bytes or a str, not", call)
        self.assertRaisesRegex(ValueError, "delay: expected a time that ends", push, delay=math.inf)
        self.assertEqual(self.client.len(self.queue), 0)

    def test_a_pause_ends_by_resume_or_by_its_moment(self) -> None:
        self.client.push(self.queue, "x")
        for until in (None, datetime.now(timezone.utc) + timedelta(hours=1)):
            self.client.pause(self.queue, until)
            self.client.pause(self.queue, until, pushes=True)
            self.assertEqual(self.client.pop(self.queue), [])
            self.assertRaises(hf.Paused, self.client.push, self.queue, "x")
            self.client.resume(self.queue)
            self.assertEqual(len(self.client.pop(self.queue)), 1)
            self.client.resume(self.queue, pushes=True)
            self.client.push(self.queue, "x")

    def test_settings_and_figures(self) -> None:
        self.client.set(self.queue, {"max-attempts": 3, "bound": 2, "share-by": "key", "exclusive-consumer": True, "enum": ["class", "low", "high"]})
        settings = self.client.get(self.queue)
        self.assertEqual((settings["max-attempts"], settings["enum class"]), ("3", "low,high"))
        self.client.push(self.queue, "a", key="acme", priority=3)
        self.client.push(self.queue, "b", key="acme", delay=60)
        self.assertRaises(hf.Full, self.client.push, self.queue, "c")
        self.assertRaises(hf.Full, self.client.push, self.queue, "c", block=0.01)
        stats = self.client.stats(self.queue)
        self.assertEqual((stats["ready"], stats["delayed"], stats["full"], stats["priorities"][0]), (1, 1, 1, {"from": 1, "to": 9, "packets": 1}))
        self.assertGreaterEqual(stats["age"], 0)
        self.assertEqual(self.client.len(self.queue), 2)
        [producer] = self.client.producers(self.queue)
        self.assertEqual(producer["pushed"], 2)
        self.client.set_share(self.queue, "acme", weight=2, max_claimed=1, rate="10/1m", rest=60)
        cursor, [share] = self.client.shares(self.queue)
        self.assertEqual((cursor, share["name"], share["weight"], share["max-claimed"], share["ready"]), ("0", "acme", 2, 1, 1))
        self.assertLessEqual(share["rests"], 60000)
        self.client.reset_share(self.queue, "acme")
        [packet] = self.client.claim(self.queue, consumer="w1")
        [consumer] = self.client.consumers(self.queue)
        self.assertEqual((consumer["name"], consumer["claimed"], consumer["ids"]), ("w1", 1, [packet.id]))

    def test_packets_are_listed_moved_and_deleted(self) -> None:
        other = name()
        ids = self.client.push_batch(self.queue, ["a", "b", "c", "d"])
        cursor, packets = self.client.list(self.queue, count=3)
        cursor, more = self.client.list(self.queue, cursor)
        self.assertEqual(([p.id for p in packets + more], cursor), (ids, "0"))
        self.assertEqual([p.id for p in self.client.peek(self.queue, 2)], ids[:2])
        self.assertEqual(self.client.move(self.queue, other, ids[0]), 1)
        self.assertEqual(self.client.delete(self.queue, ids[1], ids[0]), 1)
        self.assertEqual(self.client.move_all(self.queue, other, count=1), 1)
        self.assertEqual(self.client.purge(other, state="ready", dry_run=True), 2)
        self.client.set_priority(self.queue, ids[3], 1)
        self.client.reschedule_in(self.queue, ids[3], 3600)
        self.assertEqual(self.client.show(self.queue, ids[3]).state, "delayed")
        self.assertEqual(self.client.cancel(self.queue, *ids[2:]), ["", "gone"])
        self.client.drop(other)

    def test_errors_are_told_apart(self) -> None:
        self.assertRaises(hf.NoQueue, self.client.stats, self.queue)
        self.client.set(self.queue, {"max-attempts": 2})
        self.assertRaises(hf.NoPacket, self.client.set_priority, self.queue, "1", 2)
        self.assertRaises(hf.Invalid, self.client.push, self.queue, "x", ttl=10**12)
        self.assertRaisesRegex(TypeError, "prio is no option", self.client.push, self.queue, "x", prio=1)
        self.assertRaises(hf.TooLarge, self.client.push, self.queue, b"x" * (1 << 20) + b"x")
        self.assertRaises(hf.TooLarge, self.client.push_batch, self.queue, [b"x" * (1 << 20)] * 5)
        self.looks.redis.set(self.queue + "s", "x")
        self.assertRaises(hf.WrongType, self.client.push, self.queue + "s", "x")
        self.client.pause(self.queue, datetime.now(timezone.utc) + timedelta(1), pushes=True)
        self.assertRaises(hf.Paused, self.client.push, self.queue, "x")
        self.assertTrue(self.client.close_queue(self.queue))
        self.assertFalse(self.client.close_queue(self.queue))
        self.assertRaises(hf.Closed, self.client.push, self.queue, "x")
        self.assertRaises(hf.Closed, self.client.claim, self.queue, block=math.inf)

    def test_a_take_that_blocks_gets_what_comes(self) -> None:
        def push() -> None:
            self.until(lambda: any(c.get("waiting") for c in self.looks.consumers(self.queue)))
            self.looks.push(self.queue, "x")

        self.looks.set(self.queue, {"lease": 30})
        pusher = threading.Thread(target=push)
        pusher.start()
        self.assertEqual([p.payload for p in self.client.claim(self.queue, block=math.inf)], [b"x"])
        pusher.join()
        self.assertEqual(self.client.claim(self.queue, block=0.01), [])


class SyncClient(Calls, Case):
    options: dict[str, Any] = {}

    def setUp(self) -> None:
        super().setUp()
        self.client = hf.Client(URL, **self.options)
        self.addCleanup(self.client.close)


class SyncClientResp3(SyncClient):
    options = resp3.SYNC


class AsyncClient(Calls, Case):
    options: dict[str, Any] = {}

    def setUp(self) -> None:
        super().setUp()
        self.client = Waits(**self.options)
        self.addCleanup(self.client.close)


class AsyncClientResp3(AsyncClient):
    options = resp3.ASYNC


class LostConnections(Case):
    def test_a_push_without_an_answer_is_unknown_and_sent_once(self) -> None:
        deaf = Says(self, b"")
        with hf.Client(deaf.url) as client:
            self.assertRaises(hf.Unknown, client.push, self.queue, "x")
            self.assertRaises(hf.Away, client.len, self.queue)

        async def main() -> None:
            async with hf.AsyncClient(deaf.url) as client:
                with self.assertRaises(hf.Unknown):
                    await client.push(self.queue, "x")

        asyncio.run(main())

    def test_a_push_that_was_not_sent_is_no_unknown_one(self) -> None:
        with hf.Client("redis://127.0.0.1:1") as client:
            self.assertRaises(hf.Away, client.push, self.queue, "x")

    def test_a_call_goes_on_over_a_new_connection(self) -> None:
        proxy = Proxy(self)
        with hf.Client(proxy.url) as client:
            client.push(self.queue, "a")
            proxy.cut()
            client.push(self.queue, "b")  # no Unknown: the end of the idle connection was seen
            self.assertEqual(client.len(self.queue), 2)

        async def main() -> None:
            async with hf.AsyncClient(proxy.url) as client:
                await client.push(self.queue, "c")
                proxy.cut()
                while not client._idle[0]._reader.at_eof():
                    await asyncio.sleep(0)
                await client.push(self.queue, "d")

        asyncio.run(main())

    def test_calls_that_wait_differently_share_a_connection(self) -> None:
        with hf.Client(URL, client_name=self.queue) as client:
            for i in range(1, 5):
                client.push(self.queue, "x", block=float(i))
                client.claim(self.queue, block=float(i))
            client.purge(self.queue)
            names = [c["name"] for c in self.looks.redis.client_list()]
            self.assertEqual(names.count(self.queue), 1)

    def test_a_network_that_goes_silent_costs_one_call(self) -> None:
        proxy = SilentProxy(self)
        with hf.Client(proxy.url, socket_timeout=0.5, client_name=self.queue) as client:
            waits = [threading.Thread(target=client.pop, args=[self.queue], kwargs={"block": LIMIT}) for _ in range(4)]
            for wait in waits:
                wait.start()
            self.until(lambda: [c["flags"] for c in self.looks.redis.client_list() if c["name"] == self.queue] == 4 * ["b"])
            self.looks.push_batch(self.queue, "abcd")
            for wait in waits:
                wait.join()
            proxy.silence()
            self.assertRaises(hf.Unknown, client.push, self.queue, "x")
            client.push(self.queue, "y")

    def test_calls_at_once_share_a_bounded_number_of_connections(self) -> None:
        async def main() -> int:
            async with hf.AsyncClient(URL, client_name=self.queue) as client:
                await asyncio.gather(*(client.push(self.queue, "x") for _ in range(200)))
                return [c["name"] for c in self.looks.redis.client_list()].count(self.queue)

        self.assertLessEqual(asyncio.run(main()), 64)

    def test_an_answer_has_time_while_it_comes(self) -> None:
        slow = Says(self, b"*1\r\n*4\r\n$2\r\nid\r\n$1\r\n7\r\n$5\r\nqueue\r\n$1\r\nq\r\n", pause=0.05)

        async def main() -> list[hf.Packet]:
            async with hf.AsyncClient(slow.url, socket_timeout=1.5) as client:
                return await client.pop(self.queue)

        self.assertEqual([p.id for p in asyncio.run(main())], ["7"])

    def test_a_connection_that_was_given_up_tells_nobody_of_its_error(self) -> None:
        told: list[Any] = []

        async def times_out_at_once(connection: Any) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise exceptions.TimeoutError("Timeout connecting to server")

        async def main() -> None:
            asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context))
            async with hf.AsyncClient(URL, socket_timeout=0.01) as client:
                with mock.patch.object(client._pool.connection_class, "connect", times_out_at_once):
                    with self.assertRaises(hf.Away):
                        await client.len(self.queue)
            gc.collect()

        asyncio.run(main())
        self.assertEqual(told, [])

    def test_a_silent_server_is_noticed(self) -> None:
        proxy = Proxy(self)
        proxy.open.clear()
        with hf.Client(proxy.url, socket_timeout=0.05) as client:
            self.assertRaises(hf.Away, client.push, self.queue, "x")  # at the login
        proxy.open.set()


class Words(unittest.TestCase):
    def test_an_error_without_its_first_word_has_its_class(self) -> None:
        kinds = {
            hf.Denied: exceptions.AuthenticationError("wrong"),
            hf.Forbidden: exceptions.NoPermissionError("no right"),
            hf.NoSpace: exceptions.ResponseError("OOM the disk is nearly full"),
            hf.TooMany: exceptions.ConnectionError("max number of clients reached"),
            hf.InUse: exceptions.ResponseError("INUSE by w1"),
        }
        for kind, error in kinds.items():
            self.assertIs(type(refusal(error)), kind)
            self.assertNotRegex(str(refusal(error)), "[A-Z]{3}")  # the class says the code
        self.assertIsNone(refusal(exceptions.ConnectionError("Connection closed by server.")))

    def test_a_reason_is_the_class_and_the_text(self) -> None:
        class Odd(Exception):
            def __str__(self) -> str:
                raise RuntimeError

        self.assertEqual(reason(ValueError("no such address")), "ValueError: no such address")
        self.assertEqual(reason(Odd()), "Odd")
        self.assertEqual(reason(hf.Dead("a text")), "a text")
        self.assertLessEqual(len(reason(ValueError("ü" * 4096)).encode()), 4096)
        try:
            raise hf.RetryIn(1) from KeyError("to")
        except hf.RetryIn as error:
            self.assertEqual(reason(error), "KeyError: 'to'")

    def test_a_verdict_may_have_words_of_the_program(self) -> None:
        verdict = hf.Dead("why")
        verdict.words = 5  # type: ignore[attr-defined]
        self.assertEqual(requests.nack(hf.Packet("1", "q"), verdict).words[-1], "DEAD")

    def test_a_hold_is_from_a_second_to_a_day(self) -> None:
        held = [hf.Hold(seconds)._words for seconds in (-1, 0, 0.5, 1.5, 86400, 172800, math.inf)]
        self.assertEqual([ms for _, ms in held], [1000, 1000, 1000, 1500, 86_400_000, 86_400_000, 86_400_000])

    def test_help_shows_what_a_call_takes_and_gives(self) -> None:
        for client in (hf.Client, hf.AsyncClient):
            self.assertEqual(str(inspect.signature(client.show)), "(self, /, queue: 'str', id: 'str') -> 'Packet'")
            self.assertIn("NoPacket", client.show.__doc__)


if __name__ == "__main__":
    unittest.main()
