"""The result backend of Celery against a server at HOLDFAST_URL."""
from __future__ import annotations

import os
import threading
import unittest
from unittest import mock
from uuid import uuid4

try:
    from celery import Celery, states
    from celery.app.task import Context
    from celery.exceptions import BackendStoreError, TimeoutError
except ImportError:
    raise unittest.SkipTest("Celery is not installed: apt install python3-celery")

from redis.exceptions import ExecAbortError

from holdfast_queue.backend import LONGEST, HoldfastBackend
from holdfast_queue.transport_claims import pipeline
from tests.silent import SilentProxy, comes_back

ADDRESS = os.environ.get("HOLDFAST_URL", "redis://127.0.0.1:6379").replace("redis", "holdfast", 1)
HELLO = {"hello": "world"}


class Backend(unittest.TestCase):
    def setUp(self) -> None:
        self.backend = HoldfastBackend(app=Celery(set_as_current=False), url=ADDRESS)
        self.addCleanup(self.backend.client.close)

    def test_a_result_is_kept_for_its_time(self):
        task = uuid4().hex
        self.assertEqual(self.backend.get_state(task), states.PENDING)
        self.backend.store_result(task, {"x": 1}, states.SUCCESS)
        self.assertEqual(self.backend.get_result(task), {"x": 1})
        self.assertGreater(self.backend.client.ttl(self.backend.get_key_for_task(task)), 80000)
        self.backend.forget(task)
        self.assertEqual(self.backend.get_state(task), states.PENDING)

    def test_results_come_as_they_are_told_also_twice(self):
        tasks = [uuid4().hex for _ in range(20)]

        def store():
            while not self.backend.client.pubsub_numsub(self.backend.get_key_for_task(tasks[-1]))[0][1]:
                pass
            for task in tasks:
                key = self.backend.get_key_for_task(task)
                value = self.backend.encode(self.backend._get_result_meta(task, states.SUCCESS, None, None))
                pipeline(self.backend.client, [("SET", key, value), ("PUBLISH", key, ""), ("PUBLISH", key, "")])

        storer = threading.Thread(target=store)
        storer.start()
        got = dict(self.backend.get_many(tasks, timeout=30, interval=30))
        storer.join()
        self.assertEqual({task: meta["result"] for task, meta in got.items()}, {task: task for task in tasks})

    def test_what_is_looked_at_between_is_looked_at_before_a_result_is_given(self):
        task = uuid4().hex
        self.backend.store_result(task, HELLO, states.SUCCESS)
        with self.assertRaises(ZeroDivisionError):  # as Celery's raises the error of a task that came before
            self.backend.wait_for(task, timeout=30, on_interval=lambda: 1 / 0)

    def test_a_wait_ends_by_its_timeout(self):
        with self.assertRaisesRegex(TimeoutError, "no result within 0.1 s"):
            self.backend.wait_for(uuid4().hex, timeout=0.1)

    def test_a_wait_tries_a_lost_server_no_longer_than_its_timeout(self):
        with mock.patch("holdfast_queue.backend.retry_over_time", side_effect=ConnectionError) as tried:
            self.assertRaises(ConnectionError, self.backend.wait_for, uuid4().hex, timeout=3)
        self.assertLessEqual(tried.call_args.kwargs["timeout"], 3)

    def test_the_policy_of_retries_may_have_a_timeout(self):
        app = Celery(set_as_current=False)
        app.conf.result_backend_transport_options = {"retry_policy": {"timeout": 5.0}}
        backend, task = HoldfastBackend(app=app, url=ADDRESS), uuid4().hex
        self.addCleanup(backend.client.close)
        backend.store_result(task, HELLO, states.SUCCESS)
        for timeout in None, 30, 3:
            self.assertEqual(backend.wait_for(task, timeout=timeout)["result"], HELLO)
            with mock.patch("holdfast_queue.backend.retry_over_time", side_effect=ConnectionError) as tried:
                self.assertRaises(ConnectionError, backend.wait_for, task, timeout=timeout)
            self.assertLessEqual(tried.call_args.kwargs["timeout"], min(5, timeout or 5))

    def test_a_result_is_stored_when_a_full_disk_has_room_again(self):
        self.backend._policy["interval_max"] = 0
        store = mock.Mock(side_effect=[ExecAbortError("disk is nearly full"), 7])
        self.assertEqual(self.backend._again(store), 7)

    def chord(self, parts):
        """Has a chord wait for so many parts, and returns how one of them ends, and what joined chords gave."""
        group, joined = uuid4().hex, []
        self.backend.set_chord_size(group, parts)
        callback = mock.Mock(spec=["delay"], delay=joined.append)
        self.enterContext(mock.patch("holdfast_queue.backend.maybe_signature", return_value=callback))

        def end(index, state=states.SUCCESS, result=None):
            part = Context(id=f"{group}-{index}", group=group, group_index=index, chord={})
            self.backend.on_chord_part_return(part, state, index if result is None else result)

        return group, end, joined

    def test_a_chord_has_the_results_in_order_and_counts_a_part_that_runs_twice_once(self):
        group, end, joined = self.chord(3)
        for index in 2, 0, 0, 1:
            self.assertEqual(joined, [])
            end(index)
        end(1)  # it was joined before its last part was acknowledged
        self.assertEqual(joined, [[0, 1, 2]])

    def test_a_chord_whose_size_comes_last_waits_for_it(self):
        group, end, joined = self.chord(0)
        self.backend.delete(self.backend.get_key_for_group(group, ".s"))
        end(0)
        self.backend.set_chord_size(group, 2)
        self.backend.add_to_chord(group, mock.Mock(id="added"))
        end(1)
        self.assertEqual(joined, [])
        end(2)
        self.assertEqual(joined, [[0, 1, 2]])

    def test_a_part_that_failed_fails_its_chord(self):
        group, end, joined = self.chord(1)
        with mock.patch.object(self.backend, "chord_error_from_stack") as failed:
            with self.assertLogs("holdfast_queue.backend"):
                end(0, states.FAILURE, ValueError("broken"))
        self.assertEqual((joined, str(failed.call_args.args[1])), ([], f"Dependency {group}-0 raised ValueError('broken')"))

    def test_a_result_beyond_the_limit_says_so(self):
        with self.assertRaisesRegex(BackendStoreError, "a string at most 1048576"):
            self.backend.set(b"x", b"x" * (LONGEST + 1))

    def test_a_silent_network_is_noticed_and_results_are_stored_by_a_new_connection(self):
        proxy, task = SilentProxy(self), uuid4().hex
        self.assertEqual(self.backend.client.connection_pool.connection_kwargs["socket_timeout"], 5)
        far = HoldfastBackend(app=Celery(set_as_current=False), url=f"holdfast://{proxy.address}?socket_timeout=0.3")
        self.addCleanup(far.client.close)
        far.client.ping()
        proxy.silence()
        comes_back(self, far.store_result, task, HELLO, states.SUCCESS)
        self.assertEqual(self.backend.get_result(task), HELLO)


if __name__ == "__main__":
    unittest.main()
