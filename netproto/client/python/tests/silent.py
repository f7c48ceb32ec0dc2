"""A network that goes silent without a word, for the tests of the transport and of the result backend."""
from __future__ import annotations

import socket
import threading
import unittest
from typing import Any, Callable

from tests.support import LIMIT, Proxy


class SilentProxy(Proxy):
    """A network whose open connections can go silent for good, while new ones pass."""

    def __init__(self, case: unittest.TestCase) -> None:
        self.deaf: set[socket.socket] = set()
        super().__init__(case)
        self.address = self.url.partition("://")[2]

    def silence(self, answers_alone: bool = False) -> None:
        """What is open passes nothing any more, or it passes what is asked, but no answers."""
        self.deaf.update(self.sockets[1::2] if answers_alone else self.sockets)

    def _pass(self, a: socket.socket, b: socket.socket) -> None:
        try:
            while data := a.recv(65536):
                if a not in self.deaf:
                    b.sendall(data)
        except OSError:
            pass
        self._end(a, b)


def comes_back(case: unittest.TestCase, call: Callable, *args: Any, **options: Any) -> None:
    """Fails if a call hangs or raises."""
    ended = threading.Event()
    threading.Thread(target=lambda: (call(*args, **options), ended.set()), daemon=True).start()
    case.assertTrue(ended.wait(LIMIT), "it hangs, or it has raised")
