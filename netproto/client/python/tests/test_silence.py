"""The transport of kombu behind a network that goes silent, against a server at HOLDFAST_URL."""
from __future__ import annotations

import socket
import time
import unittest
from unittest import mock

import redis

from tests.silent import SilentProxy, comes_back
from tests.test_transport import HELLO, Case, connect, kombu  # which skips all where kombu is not installed

from kombu.exceptions import OperationalError

from holdfast_queue import transport_channel


class Silence(Case):
    """A network that loses connections without a word, and passes new ones."""

    def setUp(self) -> None:
        super().setUp()
        self.proxy = SilentProxy(self)

    def behind(self, **options) -> kombu.Connection:
        options = {"socket_timeout": 0.3, **options}
        connection = kombu.Connection(f"holdfast://{self.proxy.address}", transport_options=options)
        self.addCleanup(connection.release)
        return connection

    def test_a_command_is_lost_before_its_lease_is(self):
        for options, seconds in ({}, 5), ({"lease": 12}, 2), ({"lease": 1}, 1), ({"lease": 1, "socket_timeout": 7}, 7):
            with connect(**options) as connection:
                self.assertEqual(connection.transport._parameters()["socket_timeout"], seconds)

    def test_a_push_without_an_answer_is_made_again_and_is_one(self):
        name = self.name()
        with self.behind().channel() as channel:
            producer = kombu.Producer(channel)
            producer.publish(HELLO, routing_key=name)
            self.proxy.silence(answers_alone=True)
            comes_back(self, producer.publish, HELLO, routing_key=name, retry=True)
        self.assertEqual(self.server.llen(name), 2)

    def test_an_event_that_nobody_can_be_told_holds_nobody_up(self):
        channel = self.connection.default_channel
        with mock.patch.object(channel.transport._redis, "execute_command", side_effect=redis.ConnectionError):
            with self.assertRaises(redis.ConnectionError):
                channel._put_fanout("celery.pidbox", HELLO, "")
            channel._put_fanout("celeryev", HELLO, "worker.heartbeat")
        with mock.patch.object(channel.transport, "call", side_effect=AssertionError("it is tried at once")):
            channel._put_fanout("celeryev", HELLO, "worker.heartbeat")

    def test_a_push_is_not_made_again_when_the_server_has_forgotten_it(self):
        name, channel = self.name(), self.connection.default_channel
        message = channel.prepare_message("x")
        channel.basic_publish(message, "", name)
        with mock.patch.object(transport_channel, "monotonic", lambda: time.monotonic() + 60):
            with self.assertRaisesRegex(OperationalError, "look whether it is there"):
                channel.basic_publish(message, "", name)

    def test_claims_are_extended_by_a_new_connection(self):
        name, got = self.name(), []
        self.publish(HELLO, routing_key=name)
        holder = self.behind(lease=6)
        consumer = kombu.Consumer(holder, [kombu.Queue(name)], prefetch_count=1,
                                  callbacks=[lambda body, message: got.append(message)])
        consumer.consume()
        while not got:
            holder.drain_events(timeout=5)
        first = self.lease_end(name)
        self.proxy.silence()
        end = time.monotonic() + 30
        while self.lease_end(name) <= first:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def test_who_consumes_and_listens_does_so_by_new_connections(self):
        exchange, got = kombu.Exchange(self.name(), "fanout"), []
        queue, heard = kombu.Queue(self.name()), kombu.Queue(self.name(), exchange)
        consumer = kombu.Consumer(self.behind(), [queue, heard], no_ack=True,
                                  callbacks=[lambda body, _: got.append(body)])
        with mock.patch.object(transport_channel, "BLOCK", 100), consumer:
            for words in {"told", "sent"}, {"told again", "sent again"}:
                end = time.monotonic() + 30
                while not words <= set(got):
                    self.assertLess(time.monotonic(), end)
                    # The server may still take one for the connection that is lost.
                    self.publish(min(words), routing_key=queue.name)
                    self.publish(max(words), exchange)
                    try:
                        consumer.connection.drain_events(timeout=0.1)
                    except socket.timeout:
                        pass
                self.proxy.silence()

    def test_a_claim_without_an_answer_does_not_hold_up_a_cancel(self):
        consumer = kombu.Consumer(self.behind(), [kombu.Queue(self.name())], callbacks=[self.fail])
        with mock.patch.object(transport_channel, "BLOCK", 500):
            consumer.consume()
            with self.assertRaises(socket.timeout):
                consumer.connection.drain_events(timeout=0.1)  # a claim waits now
            self.proxy.silence()
            with self.assertRaises(redis.TimeoutError):
                consumer.connection.transport.call("PING")
            consumer.connection.transport.call("PING")
            comes_back(self, consumer.cancel)


if __name__ == "__main__":
    unittest.main()
