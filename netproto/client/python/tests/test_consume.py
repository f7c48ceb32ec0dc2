"""Workers of both clients: what becomes of packets when networks fail and workers end."""

import asyncio
import os
import signal
import threading
import unittest
from datetime import timedelta
from typing import Any
from unittest import mock

import holdfast_queue as hf
from holdfast_queue import requests
from tests import resp3, workers
from tests.support import Proxy, Says, name


class Consume:
    """What holds for workers of each client."""

    def test_a_handler_that_returns_ends_its_packet(self) -> None:
        seen: list[bytes] = []
        self.running(lambda p: seen.append(p.payload))
        self.looks.push_batch(self.queue, [b"a\xff", "b", "c"])
        self.until(lambda: self.looks.stats(self.queue)["acked"] == 3)
        self.assertEqual(seen, [b"a\xff", b"b", b"c"])

    def test_so_many_run_at_once_and_no_more(self) -> None:
        together, most = threading.Barrier(4), []

        def work(p: hf.Packet) -> None:
            most.append(self.looks.stats(self.queue)["claimed"])
            together.wait(10)

        self.looks.push_batch(self.queue, ["x"] * 8)
        self.running(work, concurrency=4)
        self.until(lambda: self.looks.stats(self.queue)["acked"] == 8)
        self.assertLessEqual(max(most), 8)  # four at work, four that wait for the server's word

    def test_a_lease_is_renewed(self) -> None:
        end = threading.Event()
        id = self.looks.push(self.queue, "x")
        self.running(lambda p: end.wait(30), lease=3.0)
        first = self.until(lambda: self.show(id).lease_end)
        self.until(lambda: (self.show(id).lease_end - first).total_seconds() > 0.6)
        end.set()
        self.until(lambda: self.gone(id))
        self.assertEqual(self.looks.stats(self.queue)["acked"], 1)

    def test_a_handler_learns_that_its_lease_is_lost(self) -> None:
        ended: list[Any] = []
        self.looks.push(self.queue, "x")
        running = self.running(self.hang(ended), lease=0.3)
        self.until(self.begun.is_set)
        self.until(lambda: self.looks.harvest(self.queue))
        self.until(lambda: ended)
        self.assertIsInstance(ended[0], hf.Stale)
        running.shutdown(0)  # with the packet's next attempt

    def test_a_handler_learns_that_its_packet_is_cancelled(self) -> None:
        ended: list[Any] = []
        id = self.looks.push(self.queue, "x")
        self.running(self.hang(ended), lease=1.0)
        self.until(self.begun.is_set)
        self.assertEqual(self.looks.cancel(self.queue, id), ["told"])
        self.until(lambda: ended)
        self.assertIsInstance(ended[0], hf.Cancelled)
        self.until(lambda: self.gone(id))

    def test_shutdown_waits_for_handlers_and_claims_no_more(self) -> None:
        begun, end = threading.Event(), threading.Event()

        def work(p: hf.Packet) -> None:
            begun.set()
            end.wait(30)

        self.looks.push(self.queue, "x")
        running = self.running(work)
        self.assertTrue(begun.wait(30))
        stopper = threading.Thread(target=running.shutdown)
        stopper.start()
        self.until(lambda: running.client.stopping)
        end.set()
        stopper.join()
        running.join()
        self.assertEqual(self.looks.stats(self.queue)["acked"], 1)
        id = self.looks.push(self.queue, "y")
        self.assertEqual(self.show(id).state, "ready")

    def test_shutdown_returns_what_is_not_finished_in_time(self) -> None:
        ended: list[Any] = []
        id = self.looks.push(self.queue, "x")
        running = self.running(self.hang(ended))
        self.until(lambda: self.show(id).state == "claimed")
        self.assertEqual(running.shutdown(timedelta(milliseconds=10)), 1)
        p = self.show(id)
        self.assertEqual((p.state, p.attempt, p.reason), ("ready", 0, "the worker was shut down"))
        running.join()

    def test_a_waiting_worker_ends_at_once(self) -> None:
        running = self.running(lambda p: None)
        self.until(lambda: any(c.get("waiting") for c in self.looks.consumers(self.queue)))
        running.shutdown()
        running.join()
        id = self.looks.push(self.queue, "x")
        self.assertEqual(self.show(id).state, "ready")

    def test_a_closed_queue_ends_its_workers(self) -> None:
        self.looks.push(self.queue, "x")
        running = self.running(lambda p: None)
        self.looks.close_queue(self.queue)
        running.join()
        self.assertEqual(self.looks.stats(self.queue)["acked"], 1)

    def test_a_burst_ends_when_there_is_nothing_to_claim(self) -> None:
        seen: list[bytes] = []

        def work(p: hf.Packet) -> None:
            seen.append(p.payload)
            if p.payload == b"again" and p.attempt == 1:
                raise hf.RetryIn(0)  # so that it is there when nothing else is

        self.looks.push_batch(self.queue, ["again", *"abcdefgh"])
        self.looks.push(self.queue, "later", delay=3600)
        self.running(work, concurrency=4, burst=True).join()
        self.assertEqual(sorted(seen), sorted([b"again", *(bytes([c]) for c in b"abcdefgh"), b"again"]))
        self.looks.push_batch(self.queue, ["x", "y", "z"])
        self.start(self.client(), self.queue, 2, 30.0, lambda packets: seen.append(len(packets)), call="consume_batch", burst=True).join()
        self.assertEqual(seen[-2:], [2, 1])
        self.queue = name()
        self.running(work, burst=True).join()

    def test_a_batch_is_handled_together(self) -> None:
        seen: list[list[bytes]] = []

        def work(packets: list[hf.Packet]) -> None:
            seen.append([p.payload for p in packets])
            if len(packets) == 1:
                raise hf.Dead("alone")

        self.looks.push_batch(self.queue, ["a", "b", "c"])
        running = self.start(self.client(), self.queue, 2, 0.05, work, call="consume_batch")
        self.until(lambda: self.looks.stats(self.queue)["dead"] == 1)
        self.assertEqual((seen, self.looks.stats(self.queue)["acked"]), ([[b"a", b"b"], [b"c"]], 2))
        running.shutdown()

    def test_a_handler_may_answer_itself(self) -> None:
        def work(p: hf.Packet) -> None:
            self.looks.nack(p, hf.Dead("by itself"))

        id = self.looks.push(self.queue, "x")
        running = self.running(work)
        self.until(lambda: self.show(id).state == "dead")
        running.shutdown()
        self.assertEqual(self.show(id).reason, "by itself")

    def test_a_network_that_is_cut_costs_no_packet(self) -> None:
        proxy, seen = Proxy(self), []
        self.running(lambda p: seen.append(p.payload), proxy.url, concurrency=4, lease=0.5)
        for i in range(5):
            self.looks.push_batch(self.queue, [f"{i}-{n}" for n in range(20)])
            proxy.cut()
            self.until(lambda: len(set(seen)) >= 20 * i + 10)
        self.until(lambda: self.looks.len(self.queue) == 0)
        self.assertEqual(len(set(seen)), 100)

    def test_a_network_that_is_silent_is_left(self) -> None:
        proxy, ended = Proxy(self), []
        with mock.patch.object(requests, "TURN", 0.1):
            id = self.looks.push(self.queue, "x")
            running = self.running(self.hang(ended), proxy.url, timeout=0.2, lease=0.4)
            self.until(self.begun.is_set)  # a claim that comes too late is left to others
            proxy.open.clear()
            self.until(lambda: ended)
            self.assertIsInstance(ended[0], hf.Stale)
            proxy.open.set()
            self.until(lambda: len(ended) > 1 or self.show(id).attempt > 1)  # it comes again
            running.shutdown(0)

    def test_a_refusal_that_does_not_pass_ends_the_worker(self) -> None:
        self.queue = name()
        self.looks.redis.set(self.queue, "a string")
        with self.assertRaises(hf.WrongType):
            self.running(lambda p: None).join()
        with self.assertRaises(hf.Forbidden):
            self.running(lambda p: None, Says(self, b"-NOPERM no right\r\n").url).join()

    def test_a_refusal_that_passes_is_waited_for(self) -> None:
        for word in (b"-OOM the disk is nearly full", b"-LOADING", b"-ERR max number of clients reached"):
            says = Says(self, word + b"\r\n")
            running = self.running(lambda p: None, says.url)
            self.until(lambda: says.asked > 1)
            says.answer = b"-NOPERM no right\r\n"
            with self.assertRaises(hf.Forbidden):
                running.join()

    def test_wrong_options_are_refused(self) -> None:
        for options in ({"concurrency": 0}, {"lease": 0}):
            with self.assertRaises(hf.Invalid):
                self.running(lambda p: None, **options).join()
        with self.assertRaises(TypeError):
            self.running(lambda p: None, count=3).join()


class InThreads(Consume, workers.InThreads):
    def test_a_signal_drains_all_workers(self) -> None:
        client, other, seen = self.client(), name(), []

        @client.worker(self.queue, concurrency=2)
        def work(p: hf.Packet) -> None:
            os.kill(os.getpid(), signal.SIGTERM)
            self.until(lambda: client.stopping)
            seen.append(p.payload)

        @client.worker(other, size=5)
        def batch(packets: list[hf.Packet]) -> None:
            raise AssertionError

        self.looks.push(self.queue, "x")
        before = signal.getsignal(signal.SIGTERM)
        client.work(timeout=timedelta(minutes=1))
        self.assertEqual((seen, signal.getsignal(signal.SIGTERM)), ([b"x"], before))
        self.assertEqual(self.looks.stats(self.queue)["acked"], 1)

    def test_a_signal_that_python_did_not_handle_before_ends_the_program_again(self) -> None:
        client = self.client()
        client.worker(self.queue)(lambda p: None)
        client.close_queue(self.queue)
        with mock.patch.object(signal, "signal", return_value=None) as changed:
            client.work()
        self.assertIn(mock.call(signal.SIGTERM, signal.SIG_DFL), changed.call_args_list)

    def test_shutdown_in_a_fork_does_not_wait_for_its_parent(self) -> None:
        client = self.client(socket_timeout=60.0)

        def work(p: hf.Packet) -> None:
            child = os.fork()
            if child == 0:
                os._exit(client.shutdown(60.0))
            self.addCleanup(os.waitpid, child, 0)
            self.addCleanup(os.kill, child, signal.SIGKILL)
            self.until(lambda: os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT))

        self.looks.push(self.queue, "x")
        running = self.start(client, self.queue, work)
        self.until(lambda: self.gone("x"))
        running.shutdown()
        self.assertEqual(self.looks.stats(self.queue)["acked"], 1)

    def test_one_refused_worker_ends_all_after_their_work(self) -> None:
        client, bad, begun = self.client(), name(), threading.Event()
        self.looks.redis.set(bad, "a string")

        @client.worker(self.queue)
        def work(p: hf.Packet) -> None:
            begun.set()

        client.worker(bad)(work)
        with self.assertRaises(hf.WrongType):
            client.work()


class InTasks(Consume, workers.InTasks):
    def test_the_end_of_the_task_returns_the_packets(self) -> None:
        ended: list[Any] = []
        id = self.looks.push(self.queue, "x")

        async def main() -> None:
            async with self.client() as client:
                task = asyncio.ensure_future(client.consume(self.queue, self.hang(ended)))
                while self.show(id).state != "claimed":
                    await asyncio.sleep(0.005)
                task.cancel()
                await task

        with self.assertRaises(asyncio.CancelledError):
            asyncio.run(main())
        p = self.show(id)
        self.assertEqual((p.state, p.attempt), ("ready", 0))

    def test_an_answer_that_is_refused_for_now_keeps_no_other_back(self) -> None:
        client, refused = self.client(socket_timeout=1.0), threading.Event()
        exchange = client._exchange

        async def full(commands: Any, patience: float, again: bool = True) -> list[Any]:
            held = [c for c in commands if "HOLD" in c]
            if held:
                refused.set()
            sent = [c for c in commands if c not in held] or [["PING"]]
            got = iter(await exchange(sent, patience, again))
            return [hf.NoSpace("OOM") if c in held else next(got) for c in commands]

        async def work(p: hf.Packet) -> None:
            if p.payload == b"hold":
                raise hf.Hold(60)

        client._exchange = full
        self.looks.push(self.queue, "hold")
        running = self.start(client, self.queue, work, concurrency=2)
        self.assertTrue(refused.wait(30))
        self.looks.push(self.queue, "other")
        self.until(lambda: self.looks.stats(self.queue)["acked"] == 1)
        self.assertEqual(self.looks.stats(self.queue)["claimed"], 1)
        running.shutdown(0)


class InTasksResp3(InTasks):
    options = resp3.ASYNC


if __name__ == "__main__":
    unittest.main()
