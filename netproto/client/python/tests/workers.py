"""How the tests run workers of both clients."""

import asyncio
import inspect
import threading
import time
import unittest
from typing import Any, Callable

import holdfast_queue as hf
from holdfast_queue import consume
from tests.support import URL, Case

consume.log.disabled = True  # failing handlers are what is tested
Handler = Callable[[Any], Any]


class Workers(Case):
    """A test of workers of one client. Handlers are functions, which may block."""

    def setUp(self) -> None:
        super().setUp()
        self.looks.set(self.queue, {"max-attempts": 5})  # so that it lasts without packets

    def client(self, url: str = URL, **options: Any) -> Any:
        raise NotImplementedError

    def start(self, client: Any, *args: Any, call: str = "consume", **options: Any) -> "Running":
        raise NotImplementedError

    def running(self, handler: Handler, url: str = URL, timeout: float = 5.0, **options: Any) -> "Running":
        return self.start(self.client(url, socket_timeout=timeout), self.queue, handler, **options)

    def show(self, id: str) -> hf.Packet:
        return self.looks.show(self.queue, id)

    def gone(self, id: str) -> bool:
        return not self.looks.len(self.queue)

    def hang(self, ended: list[Any]) -> Handler:
        """A handler that works until its packet is lost, and tells why."""
        self.begun = threading.Event()

        def work(p: hf.Packet) -> None:
            self.begun.set()
            while p.lost is None:
                time.sleep(0.005)
            ended.append(p.lost)
            p.check()

        return work


class Called:
    """A handler that does not look like what it calls."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler

    def __call__(self, packet: Any) -> Any:
        return self.handler(packet)


class Running:
    """A worker in a thread of its own."""

    def __init__(self, case: unittest.TestCase, client: Any, run: Callable[[], None], end: Callable[[float], int]) -> None:
        self.client, self.shutdown_in = client, end
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, args=(run,), daemon=True)
        self.thread.start()
        case.addCleanup(lambda: self.shutdown(0.0))

    def _run(self, run: Callable[[], None]) -> None:
        try:
            run()
        except BaseException as error:
            self.error = error

    def shutdown(self, timeout: float = 30.0) -> int:
        left = self.shutdown_in(timeout) if self.thread.is_alive() else 0
        self.thread.join(30)
        return left

    def join(self) -> None:
        self.thread.join(30)
        assert not self.thread.is_alive(), "the worker does not end"
        if self.error is not None:
            raise self.error


class InThreads(Workers):
    def client(self, url: str = URL, **options: Any) -> hf.Client:
        client = hf.Client(url, **options)
        self.addCleanup(client.close)
        return client

    def start(self, client: hf.Client, *args: Any, call: str = "consume", **options: Any) -> Running:
        return Running(self, client, lambda: getattr(client, call)(*args, **options), client.shutdown)


class InTasks(Workers):
    options: dict[str, Any] = {}

    def client(self, url: str = URL, **options: Any) -> hf.AsyncClient:
        return hf.AsyncClient(url, **{**self.options, **options})

    def start(self, client: hf.AsyncClient, *args: Any, call: str = "consume", **options: Any) -> Running:
        loop = asyncio.new_event_loop()

        async def main() -> None:
            async with client:
                await getattr(client, call)(*args[:-1], self.handler(args[-1]), **options)

        def shutdown(timeout: float) -> int:
            try:
                return asyncio.run_coroutine_threadsafe(client.shutdown(timeout), loop).result(30)
            except asyncio.CancelledError:
                return 0

        def run() -> None:
            try:
                loop.run_until_complete(main())
            finally:
                for task in asyncio.all_tasks(loop):
                    loop.run_until_complete(task)
                loop.close()

        return Running(self, client, run, shutdown)

    def handler(self, work: Handler) -> Handler:
        """Has a handler that may block run beside the loop."""
        asis = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
        if isinstance(work, Called) or any(is_so(work) for is_so in asis):
            return work

        async def handle(packet: Any) -> None:
            await asyncio.get_running_loop().run_in_executor(None, work, packet)

        return handle

    def hang(self, ended: list[Any]) -> Handler:
        self.begun = threading.Event()

        async def work(p: hf.Packet) -> None:
            self.begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(p.lost)

        return work
