"""What Celery offers, with one worker that is told of by the environment."""
import os
import time
import unittest

import redis
from celery import chain, chord, group
from celery.exceptions import ChordError, TaskRevokedError

from tasks import add, app, broken, flaky, note, total

WAIT = 30


class Canvas(unittest.TestCase):
    def test_chain(self):
        self.assertEqual(chain(add.s(2, 2), add.s(4), add.s(8))().get(timeout=WAIT), 16)

    def test_group(self):
        self.assertEqual(group(add.s(i, i) for i in range(10))().get(timeout=WAIT), list(range(0, 20, 2)))

    def test_chord(self):
        for n in 1, 10:
            parts = [add.s(i, i) for i in range(n)]
            self.assertEqual(chord(parts, total.s())().get(timeout=WAIT), n * (n - 1))

    def test_a_chord_over_a_generator(self):
        parts = lambda: (add.s(i, i) for i in range(10))  # noqa: E731
        self.assertEqual(chord(parts())(total.s()).get(timeout=WAIT), 90)
        self.assertEqual((group(parts()) | total.s()).delay().get(timeout=WAIT), 90)

    def test_a_chord_of_what_keeps_no_result(self):
        parts = [add.s(i, i).set(ignore_result=True) for i in range(3)]
        self.assertEqual(chord(parts, total.s())().get(timeout=WAIT), 6)

    def test_a_chain_of_chords(self):
        work = chain(group(add.s(1, 1), add.s(2, 2)), total.s(), add.s(1), group(add.s(1), add.s(2)))
        self.assertEqual(work().get(timeout=WAIT), [8, 9])

    def test_a_chord_with_a_broken_part(self):
        with self.assertRaises((ChordError, ValueError)):  # Celery raises what it finds first
            chord([add.s(1, 1), broken.s()], total.s())().get(timeout=WAIT)

    def test_an_error_is_raised_again(self):
        with self.assertRaisesRegex(ValueError, "broken"):
            broken.delay().get(timeout=WAIT)

    def test_retry_with_a_countdown(self):
        self.assertEqual(flaky.delay().get(timeout=WAIT), 2)

    def test_a_countdown_waits_on_the_server(self):
        server = redis.Redis.from_url(os.environ["BROKER"].replace("holdfast", "redis"))
        later = note.apply_async(("later",), countdown=3600)
        try:
            reply = server.execute_command("QSTAT", "celery")
            self.assertEqual(dict(zip(reply[::2], reply[1::2]))[b"delayed"], 1)
            self.assertEqual(note.apply_async(("soon",), countdown=0.2).get(timeout=WAIT), "soon")
        finally:
            self.assertEqual(app.control.purge(), 1)
        self.assertEqual(later.state, "PENDING")

    def test_revoke(self):
        result = note.apply_async(("never",), countdown=2)
        app.control.revoke(result.id, reply=True, timeout=WAIT, limit=1)
        with self.assertRaises(TaskRevokedError):
            result.get(timeout=WAIT)

    def test_what_has_expired_is_reported(self):
        with self.assertRaises(TaskRevokedError):
            note.apply_async(("too late",), expires=-1).get(timeout=WAIT)

    def test_remote_control(self):
        self.assertEqual([list(r.values()) for r in app.control.ping(timeout=WAIT, limit=1)], [[{"ok": "pong"}]])

    def test_priorities(self):
        words = ["priority-%d" % n for n in range(10)]
        results = [note.apply_async((word,), queue="ordered", priority=n) for n, word in enumerate(words)]
        app.control.add_consumer("ordered", reply=True, timeout=WAIT, limit=1)
        for result in results:
            result.get(timeout=WAIT)
        with open(os.environ["SAYS"]) as file:
            said = [line.strip() for line in file if line.startswith("priority-")]
        self.assertEqual(said, words[::-1])

    def test_events(self):
        heard = []
        with app.connection() as connection:
            receiver = app.events.Receiver(connection, handlers={"worker-heartbeat": heard.append})
            end = time.monotonic() + WAIT
            while not heard and time.monotonic() < end:
                receiver.capture(limit=1, timeout=WAIT)
        self.assertEqual(heard[0]["type"], "worker-heartbeat")


if __name__ == "__main__":
    unittest.main()
