"""The transport of kombu against a server at HOLDFAST_URL: what kombu's own tests of transports ask for."""
from __future__ import annotations

import os
import socket
import time
import unittest
from contextlib import closing
from unittest import mock
from uuid import uuid4

import redis

try:
    import kombu
except ImportError:
    raise unittest.SkipTest("kombu is not installed: apt install python3-kombu")

import holdfast_kombu  # noqa: F401, an installed package is found without
from holdfast_queue.transport import Transport
from holdfast_queue.transport_channel import _unix_ms

ADDRESS = os.environ.get("HOLDFAST_URL", "redis://127.0.0.1:6379").partition("://")[2]
HELLO = {"hello": "world"}


def connect(**options) -> kombu.Connection:
    return kombu.Connection(f"holdfast://{ADDRESS}", transport_options=options)


class Case(unittest.TestCase):
    """A test with a connection, queues of its own, and a look past kombu."""

    def setUp(self) -> None:
        self.server = redis.Redis.from_url(f"redis://{ADDRESS}")
        self.addCleanup(self.server.close)
        self.connection = connect()
        self.addCleanup(self.connection.release)

    def name(self, text: str = "test") -> str:
        return f"{text}-{uuid4().hex}"

    def stat(self, queue: str) -> dict:
        reply = self.server.execute_command("QSTAT", queue)
        return dict(zip(reply[::2], reply[1::2]))

    def publish(self, body, exchange=None, queues=(), **options) -> None:
        with self.connection.channel() as channel:
            kombu.Producer(channel, exchange=exchange).publish(body, declare=list(queues), **options)

    def consume(self, *queues: kombu.Queue, count: int = 1, **options) -> list:
        """Waits for messages, acknowledges them, and returns what is in them."""
        got = []

        def took(body, message):
            message.ack()
            got.append(body)

        with kombu.Consumer(self.connection, list(queues), callbacks=[took], **options):
            while len(got) < count:
                self.connection.drain_events(timeout=5)
        return got

    def lease_end(self, name: str) -> int:
        _, packets = self.server.execute_command("QLIST", name, "STATE", "claimed")
        return dict(zip(packets[0][::2], packets[0][1::2]))[b"lease-end"]

    def nothing(self, queue: kombu.Queue) -> None:
        """Fails if a queue has a message."""
        self.assertIsNone(queue(self.connection.default_channel).get())


class Connections(Case):
    def test_a_connection_can_be_closed_and_made_again(self):
        for _ in range(2):
            self.assertTrue(self.connection.connect())
            self.connection.close()
            self.assertIsNone(self.connection.connection)
        self.assertTrue(self.connection.default_channel)

    def test_an_address_without_a_server_is_a_connection_error(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))  # and does not listen
            lost = kombu.Connection("holdfast://127.0.0.1:%d" % free.getsockname()[1])
            with self.assertRaises(Transport.connection_errors):
                lost.connect()

    def test_the_database_of_the_address_must_be_a_number(self):
        with self.assertRaisesRegex(ValueError, "want a number from 0 to 15"):
            kombu.Connection(f"holdfast://{ADDRESS}/tasks").connect()

    def test_databases_have_queues_of_their_own(self):
        queue = kombu.Queue(self.name())
        with kombu.Connection(f"holdfast://{ADDRESS}/3") as third, closing(third.SimpleQueue(queue.name)) as other:
            other.put(HELLO)
            self.nothing(queue)
            other.get(timeout=5).ack()


class Messages(Case):
    def test_what_is_published_comes_as_it_was(self):
        name = self.name()
        queue = kombu.Queue(name, routing_key=name)
        bodies = {"json": HELLO, "pickle": {"bytes": b"\xff\x00"}}
        for serializer, body in bodies.items():
            self.publish(body, queue.exchange, [queue], routing_key=name, serializer=serializer)
        self.assertCountEqual(self.consume(queue, count=2, accept=["json", "pickle"]), bodies.values())

    def test_text_can_be_read_on_the_server(self):
        queue = self.name()
        self.publish(HELLO, routing_key=queue)
        self.assertIn(b'\\"hello\\"', self.server.lrange(queue, 0, 0)[0])

    def test_an_empty_queue_ends_a_wait_by_its_timeout(self):
        with kombu.Consumer(self.connection, [kombu.Queue(self.name())], callbacks=[self.fail]):
            with self.assertRaises(socket.timeout):
                self.connection.drain_events(timeout=0.2)

    def test_a_simple_queue_gives_headers_and_types(self):
        for kind in self.connection.SimpleQueue, self.connection.SimpleBuffer:
            with closing(kind(self.name())) as queue:
                queue.put(HELLO, headers={"k1": "v1"})
                message = queue.get(timeout=5)
                self.assertEqual((message.payload, message.content_type, message.content_encoding, message.headers),
                                 (HELLO, "application/json", "utf-8", {"k1": "v1"}))
                message.ack()

    def test_what_is_acknowledged_is_gone(self):
        name = self.name()
        with connect() as connection, closing(connection.SimpleQueue(name)) as queue:
            queue.put(HELLO)
            queue.get_nowait().ack()
            with self.assertRaises(queue.Empty):
                queue.get_nowait()
        self.assertFalse(self.server.exists(name))

    def test_what_is_rejected_is_dead(self):
        name = self.name()
        with closing(self.connection.SimpleQueue(name)) as queue:
            queue.put(HELLO)
            queue.get_nowait().reject()
            with self.assertRaises(queue.Empty):
                queue.get_nowait()
        self.assertEqual(self.stat(name)[b"dead"], 1)

    def test_what_is_requeued_comes_again_and_in_the_end_is_dead(self):
        name = self.name()
        self.server.execute_command("QSET", name, "max-attempts", 3, "backoff-min", 1)
        with closing(self.connection.SimpleQueue(name)) as queue:
            queue.put(HELLO)
            for again in False, True, True:
                message = queue.get(timeout=5)
                self.assertEqual((message.payload, message.delivery_info["redelivered"]), (HELLO, again))
                message.requeue()
        self.assertEqual(self.stat(name)[b"dead"], 1)

    def test_what_is_requeued_waits_for_the_backoff_of_its_queue(self):
        name = self.name()
        self.server.execute_command("QSET", name, "backoff-min", 600_000)
        with closing(self.connection.SimpleQueue(name)) as queue:
            queue.put(HELLO)
            queue.get(timeout=5).requeue()
        self.assertEqual(self.stat(name)[b"delayed"], 1)

    def test_a_packet_that_is_no_message_dies_and_stops_nobody(self):
        name = self.name()
        for payload in b"\xff", b"[]", b'{"properties": {}}':
            self.server.execute_command("QPUSH", name, payload)
        self.publish(HELLO, routing_key=name)
        with self.assertLogs("holdfast_queue.transport", "ERROR"):
            self.assertEqual(self.consume(kombu.Queue(name)), [HELLO])
        self.connection.default_channel.claims.end((), wait=True)
        self.assertEqual(self.stat(name)[b"dead"], 3)

    def test_a_message_beyond_the_limit_is_refused_once(self):
        with self.assertRaisesRegex(Exception, "1048576|1 MiB|too l"):
            self.publish("x" * (1 << 20), routing_key=self.name(), retry=True)

    def test_a_push_again_after_a_lost_answer_is_one_push(self):
        name, properties = self.name(), {"delivery_mode": 2}
        channel = self.connection.default_channel
        for _ in range(2):
            message = channel.prepare_message("x", properties=properties)
            channel.basic_publish(message, "", name)
        self.assertEqual(channel._size(name), 1)

    def test_a_message_that_is_published_on_is_a_new_one(self):
        name = self.name()
        queue = kombu.Queue(name)(self.connection.default_channel)
        self.publish(HELLO, routing_key=name)
        for _ in range(2):
            message = queue.get(no_ack=True)
            self.publish(message.payload, routing_key=name, **message.properties)
        self.assertEqual(queue.get(no_ack=True).payload, HELLO)


class Exchanges(Case):
    def test_direct(self):
        exchange = kombu.Exchange(self.name(), "direct")
        first, second = (kombu.Queue(self.name(), exchange, key) for key in ("d1", "d2"))
        self.publish(HELLO, exchange, [first, second], routing_key="d1")
        self.assertEqual(self.consume(first), [HELLO])
        self.nothing(second)
        self.publish(HELLO, exchange, routing_key="d3")
        self.nothing(first)
        self.nothing(second)

    def test_topic(self):
        exchange = kombu.Exchange(self.name(), "topic")
        queues = [kombu.Queue(self.name(), exchange, key) for key in ("t.*", "#", "t")]
        self.publish(HELLO, exchange, queues, routing_key="t.1")
        for queue in queues[:2]:
            self.assertEqual(self.consume(queue), [HELLO])
        self.nothing(queues[2])

    def test_nothing_is_bound(self):
        self.publish(HELLO, kombu.Exchange(self.name(), "topic"), routing_key="t.1")

    def test_another_process_knows_what_is_bound(self):
        exchange = kombu.Exchange(self.name(), "direct")
        queue = kombu.Queue(self.name(), exchange, "key")
        with connect() as other:
            queue(other.default_channel).declare()
        self.publish(HELLO, exchange, routing_key="key")
        self.assertEqual(self.consume(queue), [HELLO])
        bound = queue(self.connection.default_channel)
        bound.declare()
        bound.unbind_from(exchange, "key")
        self.publish(HELLO, exchange, routing_key="key")
        self.nothing(queue)

    def test_fanout_tells_all_who_listen(self):
        exchange = kombu.Exchange(self.name("all[*]"), "fanout")
        told = []
        queues = [kombu.Queue(self.name(), exchange, key) for key in ("", "b.#", "other.#")]
        consumers = [kombu.Consumer(self.connection.channel(), [queue], no_ack=True, auto_declare=True,
                                    callbacks=[lambda body, _, i=i: told.append((i, body))])
                     for i, queue in enumerate(queues)]
        for consumer in consumers:
            consumer.consume()
        while self.server.pubsub_numpat() == 0 or len(told) < 3:
            self.publish(HELLO, exchange, routing_key="b.c")
            self.publish(HELLO, exchange)
            try:
                self.connection.drain_events(timeout=0.1)
            except socket.timeout:
                pass
        self.assertEqual({i for i, _ in told}, {0, 1})

    def test_a_queue_that_may_go_goes_with_its_binding(self):
        exchange = kombu.Exchange(self.name(), "direct")
        queue = kombu.Queue(self.name(), exchange, "key", expires=10)
        queue(self.connection.default_channel).declare()
        self.assertLessEqual(self.server.ttl(queue.name), 30)
        self.server.delete(queue.name)  # as its time is over
        self.publish(HELLO, exchange, routing_key="key")
        self.assertFalse(self.server.exists(queue.name))
        self.assertFalse(self.server.exists(f"_kombu.binding.{exchange.name}"))

    def test_a_queue_that_may_go_stays_with_its_consumer(self):
        queue = kombu.Queue(self.name(), auto_delete=True)
        with kombu.Consumer(self.connection, [queue]):
            with self.assertRaises(socket.timeout):
                self.connection.drain_events(timeout=0.01)
            self.assertGreater(self.server.ttl(queue.name), 0)


class Order(Case):
    def test_a_higher_priority_comes_first(self):
        name = self.name()
        for body, priority in ("low", 3), ("high", 6), ("low again", 3), ("best", 99), ("none", None):
            self.publish(body, routing_key=name, priority=priority)
        self.assertEqual(self.consume(kombu.Queue(name), count=5), ["best", "high", "low", "low again", "none"])

    def test_a_simple_queue_has_priorities(self):
        with closing(self.connection.SimpleQueue(self.name(), queue_opts={"max_priority": 10})) as queue:
            for body, priority in ("first", 1), ("second", 7), ("third", 1):
                queue.put(body, priority=priority)
            got = [queue.get(timeout=5) for _ in range(3)]
            self.assertEqual([message.payload for message in got], ["second", "first", "third"])

    def test_queues_take_turns(self):
        busy, quiet = self.name("a"), self.name("b")
        for _ in range(5):
            self.publish("busy", routing_key=busy)
        self.publish("quiet", routing_key=quiet)
        got = []
        with self.connection.channel() as channel:
            channel.basic_qos(0, 1)
            consumer = kombu.Consumer(channel, [kombu.Queue(busy), kombu.Queue(quiet)],
                                      callbacks=[lambda body, message: (got.append(body), message.ack())])
            with consumer:
                while len(got) < 2:
                    self.connection.drain_events(timeout=5)
        self.assertEqual(got[:2], ["busy", "quiet"])

    def test_what_is_not_due_is_not_delivered(self):
        name, eta = self.name(), "2100-01-01T00:00:00+00:00"
        self.publish("later", routing_key=name, headers={"eta": eta})
        self.publish("now", routing_key=name, headers={"eta": "2000-01-01T00:00:00Z"})
        self.publish("odd", routing_key=name, headers={"eta": "tomorrow"})
        self.assertEqual(self.consume(kombu.Queue(name), count=2), ["now", "odd"])
        self.assertEqual(self.stat(name)[b"delayed"], 1)
        self.assertEqual(kombu.Queue(name)(self.connection.default_channel).purge(), 1)

    def test_a_moment_without_a_zone_is_utc(self):
        for text in "2020-01-01T00:00:00", "2020-01-01T00:00:00Z", "2020-01-01T01:00:00+01:00":
            self.assertEqual(_unix_ms(text), 1577836800000)

    def test_an_expiration_ends_a_message_but_not_a_task_that_celery_reports(self):
        plain, task = self.name(), self.name()
        self.publish(HELLO, routing_key=plain, expiration=0.001)
        self.publish(HELLO, routing_key=task, expiration=0.001, headers={"expires": "2000-01-01T00:00:00"})
        self.assertEqual(self.consume(kombu.Queue(task)), [HELLO])
        self.nothing(kombu.Queue(plain))


class Leases(Case):
    def held(self, name: str, count: int, **options) -> tuple[kombu.Connection, list]:
        """Publishes messages, and holds them by a connection of their own."""
        for n in range(count):
            self.publish(n, routing_key=name)
        holder, got = connect(client_name=name, **options), []
        self.addCleanup(holder.release)
        consumer = kombu.Consumer(holder, [kombu.Queue(name)], prefetch_count=3,
                                  callbacks=[lambda body, message: got.append(message)])
        consumer.consume()
        while len(got) < min(3, count):
            holder.drain_events(timeout=5)
        return holder, got

    def test_no_more_is_claimed_than_is_prefetched(self):
        name = self.name()
        holder, got = self.held(name, 10)
        self.assertEqual(self.stat(name)[b"claimed"], 3)
        got[0].ack()
        while len(got) < 4:
            holder.drain_events(timeout=5)
        self.assertEqual([m.payload for m in got], [0, 1, 2, 3])

    def test_a_connection_that_closes_gives_all_back_at_once(self):
        name = self.name()
        holder, got = self.held(name, 10)
        holder.release()
        stat = self.stat(name)
        self.assertEqual((stat[b"ready"], stat[b"claimed"]), (10, 0))
        self.assertEqual(self.consume(kombu.Queue(name), count=10), list(range(10)))

    def test_what_comes_is_delivered_at_once_and_not_with_the_next_tick(self):
        name, got = self.name(), []
        self.publish(HELLO, routing_key=name)
        with kombu.Consumer(self.connection, [kombu.Queue(name)], callbacks=[lambda body, _: got.append(body)]) as consumer:
            consumer.channel.ask()
            claimer = consumer.channel._claimer
            self.assertTrue(claimer.has_answer(5))
            self.connection.transport.on_readable(claimer._fd)
            self.assertEqual(got, [HELLO])

    def test_an_error_of_a_callback_is_not_taken_for_a_lost_connection(self):
        name = self.name()
        self.publish(HELLO, routing_key=name)
        took = mock.Mock(side_effect=ConnectionRefusedError("of the callback"))
        with kombu.Consumer(self.connection, [kombu.Queue(name)], callbacks=[took]) as consumer:
            consumer.channel.ask()
            claimer = consumer.channel._claimer
            self.assertTrue(claimer.has_answer(5))
            with self.assertRaisesRegex(ConnectionRefusedError, "of the callback"):
                self.connection.transport.on_readable(claimer._fd)

    def test_a_refused_claim_is_made_again_until_it_is_not_refused(self):
        name, got = self.name(), []
        with kombu.Consumer(self.connection, [kombu.Queue(name)], callbacks=[lambda body, _: got.append(body)]):
            self.server.set(name, "no queue")
            with self.assertLogs("holdfast_queue.transport", "WARNING") as logs, self.assertRaises(socket.timeout):
                self.connection.drain_events(timeout=0.5)
            self.assertIn("WRONGTYPE", logs.output[0])
            self.server.delete(name)
            self.publish(HELLO, routing_key=name)
            while not got:
                self.connection.drain_events(timeout=10)

    def test_a_refusal_that_is_no_end_of_a_claim_keeps_it(self):
        holder, got = self.held(self.name(), 1)
        claims = holder.transport.claims
        for refusal, kept in ("NOPERM this user has no right", 1), ("STALE the claim has ended", 0):
            with mock.patch("holdfast_queue.transport_claims.pipeline", return_value=[redis.ResponseError(refusal)]):
                claims._extend()
            self.assertEqual(len(claims.held), kept)

    def test_a_consumer_that_is_cancelled_takes_no_more(self):
        name = self.name()
        got = []
        consumer = kombu.Consumer(self.connection, [kombu.Queue(name)], callbacks=[lambda *m: got.append(m)])
        consumer.consume()
        with self.assertRaises(socket.timeout):
            self.connection.drain_events(timeout=0.1)  # a claim waits now
        consumer.cancel()
        self.publish(HELLO, routing_key=name)
        self.assertEqual(self.stat(name)[b"ready"], 1)

    def test_a_claim_is_extended_often_while_its_process_lives(self):
        name = self.name()
        self.held(name, 1, lease=6)
        ends, end = [self.lease_end(name)], time.monotonic() + 60
        while len(ends) < 3 or ends[-1] - ends[-2] > 6000 / 4:  # the first is that of the claim
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
            if self.lease_end(name) > ends[-1]:
                ends.append(self.lease_end(name))

    def test_what_another_has_meanwhile_is_not_delivered(self):
        name, got = self.name(), []
        for n in range(3):
            self.publish(n, routing_key=name)

        def took(body, message):
            got.append(body)
            if body == 0:  # this takes so long that the claims end, as of a pool without processes
                message.channel.claims.held.clear()

        with kombu.Consumer(self.connection, [kombu.Queue(name)], callbacks=[took]):
            self.connection.drain_events(timeout=5)
            with self.assertRaises(socket.timeout):
                self.connection.drain_events(timeout=0.1)
        self.assertEqual(got, [0])

    def test_what_a_callback_leaves_behind_is_delivered_later(self):
        name, got = self.name(), []
        for n in range(3):
            self.publish(n, routing_key=name)

        def took(body, message):
            message.ack()
            got.append(body)
            if body == 0:
                raise ZeroDivisionError

        with kombu.Consumer(self.connection, [kombu.Queue(name)], callbacks=[took]):
            with self.assertRaises(ZeroDivisionError):
                self.connection.drain_events(timeout=5)
            while len(got) < 3:
                self.connection.drain_events(timeout=5)
        self.assertEqual(got, [0, 1, 2])

    def test_connections_that_are_cut_come_back(self):
        name = self.name()
        holder, got = self.held(name, 4)
        self.cut(name)
        got[0].ack()
        while len(got) < 4:
            holder.drain_events(timeout=5)
        got[3].channel.claims.end((), wait=True)
        stat = self.stat(name)
        self.assertEqual((stat[b"ready"], stat[b"claimed"], stat[b"acked"]), (0, 3, 1))

    def test_who_listens_hears_again_after_a_cut(self):
        exchange, told = kombu.Exchange(self.name(), "fanout"), []
        with connect(client_name=exchange.name) as listener:
            with kombu.Consumer(listener, [kombu.Queue(self.name(), exchange)], no_ack=True,
                                callbacks=[lambda body, _: told.append(body)]):
                for word in "before", "after":
                    while word not in told:
                        self.publish(word, exchange)
                        try:
                            listener.drain_events(timeout=0.1)
                        except socket.timeout:
                            pass
                    self.cut(exchange.name)

    def cut(self, name: str) -> None:
        """Cuts the connections of a client, as a network does."""
        for client in self.server.client_list():
            if client["name"] == name:
                self.server.client_kill_filter(_id=client["id"])

    def test_a_connection_given_up_keeps_what_is_worked_on(self):
        name = self.name()
        holder, got = self.held(name, 3, lease=1.5)
        working = got.pop()
        claims = working.channel.claims
        holder.transport._lost = True  # as Celery finds it, when it publishes
        holder.collect()
        got.clear()
        end = time.monotonic() + 60
        while self.stat(name)[b"ready"] < 2:  # nobody has these any more
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        self.assertEqual(self.stat(name)[b"claimed"], 1)
        working.ack()
        claims.end((), wait=True)
        self.assertEqual(self.stat(name)[b"claimed"], 0)


if __name__ == "__main__":
    unittest.main()
