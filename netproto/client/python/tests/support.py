"""What the tests share. HOLDFAST_URL says where the server is."""

import asyncio
import itertools
import os
import socket
import threading
import time
import unittest
from typing import Any, Callable
from urllib.parse import urlsplit

from holdfast_queue import AsyncClient, Client

URL = os.environ.get("HOLDFAST_URL", "redis://127.0.0.1:6379")
LIMIT = 30.0  # bounds every wait; none should take as long
_numbers = itertools.count(1)


def name(kind: str = "q") -> str:
    """The name of a queue that no other test has."""
    return f"{kind}-{os.getpid()}-{next(_numbers)}"


class Waits:
    """An AsyncClient whose calls wait for their results, so that one test serves both clients."""

    def __init__(self, **options: Any) -> None:
        self.loop = asyncio.new_event_loop()
        self.client = AsyncClient(URL, **options)

    def __getattr__(self, call: str) -> Callable[..., Any]:
        method = getattr(self.client, call)
        return lambda *args, **options: self.loop.run_until_complete(method(*args, **options))

    def close(self) -> None:
        self.loop.run_until_complete(self.client.close())
        self.loop.close()


class Proxy:
    """A network in front of the server, which can be cut or go silent."""

    def __init__(self, case: unittest.TestCase, url: str = URL) -> None:
        parts = urlsplit(url)
        self.server = (parts.hostname, parts.port)
        self.open = threading.Event()  # bytes pass
        self.open.set()
        self.sockets: list[socket.socket] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self.listener.getsockname()[1]}"
        case.addCleanup(self.cut)
        case.addCleanup(self.listener.close)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self.listener.accept()
                far = socket.create_connection(self.server)
            except OSError:
                return
            self.sockets += [near, far]
            for ends in ((near, far), (far, near)):
                threading.Thread(target=self._pass, args=ends, daemon=True).start()

    def _pass(self, a: socket.socket, b: socket.socket) -> None:
        try:
            while data := a.recv(65536):
                self.open.wait()
                b.sendall(data)
        except OSError:
            pass
        self._end(a, b)

    @staticmethod
    def _end(*sockets: socket.socket) -> None:
        for s in sockets:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()

    def cut(self) -> None:
        """Ends all connections. New ones may come."""
        self._end(*self.sockets)


class Says:
    """A server that answers each request after the handshake with the same bytes.

    With a pause they come one by one.
    """

    def __init__(self, case: unittest.TestCase, answer: bytes, pause: float = 0.0) -> None:
        self.answer, self.asked, self.pause = answer, 0, pause
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self.listener.getsockname()[1]}"
        case.addCleanup(self.listener.close)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                s, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(s,), daemon=True).start()

    def _serve(self, s: socket.socket) -> None:
        with s:
            while data := s.recv(65536):
                if b"SETNAME" in data:
                    s.sendall(b"+OK\r\n")
                elif not self.answer:
                    return  # the connection is lost before the answer
                else:
                    self.asked += 1
                    size = 1 if self.pause else len(self.answer)
                    for i in range(0, len(self.answer), size):
                        time.sleep(self.pause)
                        s.sendall(self.answer[i : i + size])


class Case(unittest.TestCase):
    """A test with a client for its own looks."""

    def setUp(self) -> None:
        self.looks = Client(URL)
        self.addCleanup(self.looks.close)
        self.queue = name()

    def until(self, true: Callable[[], Any]) -> Any:
        """Waits until something is so, and returns it."""
        end = time.monotonic() + LIMIT
        while not (value := true()):
            if time.monotonic() > end:
                self.fail("it does not come to be")
            time.sleep(0.005)
        return value
