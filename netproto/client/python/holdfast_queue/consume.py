"""The worker: one engine, whose handlers are tasks of asyncio or run in threads."""

from __future__ import annotations

import asyncio
import inspect
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from . import requests
from .errors import Cancelled, Closed, Hold, HoldfastError, Invalid, Stale, Uncounted, Verdict, plain
from .packet import Packet, in_seconds, milliseconds, packets

if TYPE_CHECKING:
    from .client import AsyncClient

log = logging.getLogger("holdfast_queue")

LEASE = 30.0  # of consume, whatever the queue says: it must know when to renew
MOST = 1000  # packets that the server gives at once, and ids of a request
UNRUN = "the handler has not run: it must be a function without yield, and an async def is for AsyncClient"
Done = Callable[[BaseException | None], None]


def tell(text: str, *args: object, level: int = logging.WARNING, why: BaseException | None = None) -> None:
    """Writes to the log. One that fails must not end a worker."""
    with suppress(BaseException):
        log.log(level, text, *args, exc_info=why)


def begin(work: Coroutine[Any, Any, Any]) -> asyncio.Future[Any]:
    """Starts a task. When it fails after it was given up, asyncio tells nobody."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda task: task.cancelled() or task.exception())
    return task


@dataclass
class Worker:
    """A handler of a queue, and what runs it. With a size it gets lists of packets."""

    runner: type[Tasks] | type[Threads]
    queue: str
    handler: Callable[..., Any]
    options: Any = field(default_factory=dict)
    size: int = 0
    fill: requests.Time = 1.0

    def __post_init__(self) -> None:
        if not callable(self.handler) or any(is_unrun(self.handler) for is_unrun in self.runner.refused):
            raise TypeError(UNRUN)

    def call(self, packets: list[Packet]) -> Any:
        """Calls the handler. It may be one of which only its result tells that nothing has run."""
        result = self.handler(packets if self.size else packets[0])
        if result is not None and isinstance(result, self.runner.unrun):
            raise TypeError(UNRUN)
        return result


class Work:
    """What one call of a handler does."""

    def __init__(self, jobs: list[Job]) -> None:
        self.jobs = jobs
        self.leases = self.left = len(jobs)  # how many are its own, and not answered
        self.cancel: Callable[[], object] = lambda: None


class Job:
    """A packet that a handler works on."""

    __slots__ = ("packet", "renewed", "work", "why", "finished", "repeated")

    def __init__(self, packet: Packet, asked: float) -> None:
        self.packet = packet
        self.renewed = asked  # when its lease was asked for: it did not begin before
        self.work: Work
        self.why: Verdict | None = None  # how the handler ended
        self.finished = False  # its answer is known
        self.repeated = False  # the answer was sent before, and may have arrived

    def make_plain(self) -> None:
        """Takes away what the server may refuse: it is tried again, or done, at the plain cost."""
        self.packet.cost = 1
        if self.why is not None:
            self.why = Verdict(self.why.why)


class Tasks:
    """Runs handlers as tasks."""

    refused: Any = (inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    unrun: Any = (Generator, AsyncGenerator)

    def __init__(self, handler: Callable[[list[Packet]], Any], size: int) -> None:
        self.handler = handler

    def open(self) -> None:
        """Makes what runs handlers."""

    def start(self, packets: list[Packet], done: Done) -> Callable[[], object]:
        """Starts a handler, and returns what cancels it: to be kept until it calls done at its end."""
        task = asyncio.ensure_future(self._run(packets, done))
        return partial(asyncio.get_running_loop().call_soon, task.cancel)  # when it has begun

    async def _run(self, packets: list[Packet], done: Done) -> None:
        why = None
        try:
            if inspect.isawaitable(result := self.handler(packets)):
                await result
        except BaseException as error:  # SystemExit would end the loop
            why = error
        done(why)

    def close(self) -> None:
        """Ends what runs handlers."""


class Threads:
    """Runs handlers in threads. These do not keep the program from its end."""

    refused: Any = (*Tasks.refused, inspect.iscoroutinefunction)
    unrun: Any = (*Tasks.unrun, Awaitable)

    def __init__(self, handler: Callable[[list[Packet]], Any], size: int) -> None:
        self.handler, self.size = handler, size
        self.loop = asyncio.get_running_loop()
        self.todo: queue.SimpleQueue[tuple[list[Packet], Done] | None] = queue.SimpleQueue()
        self.ended: deque[Callable[[], None]] = deque()
        self.told = False  # the loop is going to look at what has ended

    def open(self) -> None:
        """Makes the threads. The system may refuse some."""
        for _ in range(self.size):
            threading.Thread(target=self._run, name="holdfast-worker", daemon=True).start()

    def start(self, packets: list[Packet], done: Done) -> Callable[[], object]:
        """Has a thread call the handler. Nothing cancels it: it asks packet.check()."""
        self.todo.put((packets, done))
        return lambda: None

    def _run(self) -> None:
        for packets, done in iter(self.todo.get, None):
            why = None
            try:
                self.handler(packets)
            except BaseException as error:
                why = error
            self.ended.append(partial(done, why))
            if not self.told:
                self.told = True
                with suppress(RuntimeError):  # the loop has ended before its handlers
                    self.loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        self.told = False
        while self.ended:
            self.ended.popleft()()

    def close(self) -> None:
        """Ends the threads, each behind its handler."""
        for _ in range(self.size):
            self.todo.put(None)


class Engine:
    """One consume: it claims, renews and answers, until all its handlers have ended."""

    def __init__(self, client: AsyncClient, worker: Worker) -> None:
        options = {**worker.options}
        self.most: int = options.pop("concurrency", 1)  # how many handlers run at once
        self.burst = bool(options.pop("burst", False))  # nothing is waited for
        self.lease = in_seconds(options.setdefault("lease", LEASE), "lease")
        if not isinstance(self.most, int) or self.most < 1 or self.lease <= 0 or not 0 <= worker.size <= MOST:
            raise Invalid(f"consume: expected a concurrency of 1, 2 or more, a lease and a size of up to {MOST}")
        self.words = ["QCLAIM", worker.queue, *requests.words(options, requests.WorkOptions)]
        self.fill = in_seconds(worker.fill, "fill")
        if worker.size and not self.burst:
            self.words += ["FILL", milliseconds(self.fill)]
        self.client, self.worker, self.queue = client, worker, worker.queue
        self.runner = worker.runner(worker.call, self.most)
        loop = asyncio.get_running_loop()
        self.stopping: asyncio.Future[None] = loop.create_future()  # nothing more is claimed
        self.ended: asyncio.Future[None] = loop.create_future()
        self.given_up = 0.0  # until when answers are sent after the handlers were given up; 0: not so
        self.returned = 0  # how many packets were returned then
        self.changed = asyncio.Event()  # wakes all that wait for what follows
        self.free = self.most  # how many more handlers may run
        self.works: set[Work] = set()  # those that are not answered whole
        self.held: dict[Packet, Job] = {}  # those whose claim is good, as far as is known
        self.answers: list[Job] = []
        self.line = client._connection()  # which claims
        self.line_id = 0  # by which the server knows it; 0 until it has said that

    async def run(self) -> None:
        """Works until the queue is drained, or shutdown."""
        parts = [begin(part) for part in (self._work(), self._renew(), self._answer())]
        self.client._engines.add(self)
        if self.client.stopping:
            self._stop()
        try:
            try:
                self.runner.open()
                await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            finally:
                if not parts[0].done():  # this was cancelled, or another part has failed
                    self._stop()
                    await self._give_back()
                    await asyncio.wait(parts[:1])
        finally:
            for part in parts[1:]:
                part.cancel()
            self.runner.close()
            self.client._engines.discard(self)
            await self.line.disconnect()
            self.ended.set_result(None)
        for part in parts:
            if part.done() and not part.cancelled():
                part.result()

    async def _work(self) -> None:
        try:
            await self._claim()
        finally:
            await self._until(self._is_idle)

    def _stop(self) -> None:
        if not self.stopping.done():
            self.stopping.set_result(None)
        self.changed.set()

    async def shutdown(self, timeout: float) -> int:
        """Claims no more, and waits for the handlers; then it returns their packets: how many."""
        self._stop()
        await asyncio.wait({self.ended}, timeout=timeout)
        if not self.ended.done():
            await self._give_back()
            await asyncio.wait({self.ended})
        return self.returned

    async def _until(self, ready: Callable[[], object]) -> None:
        while not ready():
            self.changed.clear()
            await self.changed.wait()

    def _is_idle(self) -> bool:
        if self.given_up:
            return not self.held or time.monotonic() >= self.given_up
        return not self.works

    def _room(self) -> int:
        """How many works may be claimed. Those that wait for the server's word are bounded, too."""
        return min(self.free, 2 * self.most - len(self.works), 1 if self.worker.size else MOST)

    async def _claim(self) -> None:
        pause = 0.0
        while True:
            await self._until(lambda: self.stopping.done() or self._room() > 0)
            await asyncio.sleep(0)  # handlers that are about to end come along
            if self.stopping.done():
                return
            room, running = self._room(), len(self.works)
            self.free -= room
            asked = time.monotonic()
            try:
                claimed = await self._ask(room)
            except Closed:
                return
            except HoldfastError as error:
                self.free += room
                if not error.passing:
                    raise
                tell("%s: no packet could be claimed: %s", self.queue, error)
                pause = min(max(2 * pause, 0.05), 1.0)
                await asyncio.wait({self.stopping}, timeout=pause)
                continue
            pause = 0.0
            self.free += room - await self._begin(claimed, asked)
            if self.burst and not claimed:
                if not running:
                    return
                await self._until(lambda: self.stopping.done() or len(self.works) < running)  # one may return its packet
            if self.given_up:  # this answer came late
                await self._give_back()

    async def _ask(self, room: int) -> list[Packet]:
        """Claims packets, and waits for some, until there are any or the worker is to stop."""
        words = [*self.words, "COUNT", self.worker.size or room]
        if not self.burst:
            words += ["BLOCK", milliseconds(requests.TURN)]
        asking = begin(self._request(words))
        try:
            await asyncio.wait({asking, self.stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                await self._unblock(asking)
            return packets(asking.result() if asking.done() else None)
        finally:
            asking.cancel()

    async def _request(self, words: Sequence[Any]) -> Any:
        patience = self.client._patience
        if not self.line.is_connected:
            self.line_id = 0
            [number] = await self.client._talk(self.line, [["CLIENT", "ID"]], patience)
            if isinstance(number, HoldfastError):
                await self.line.disconnect()
                raise number
            self.line_id = number
        [reply] = await self.client._talk(self.line, [words], requests.TURN + self.fill + patience)
        if isinstance(reply, HoldfastError):
            raise reply
        return reply

    async def _unblock(self, asking: asyncio.Future[Any]) -> None:
        """Ends the wait of a claim. The server may get this before it, so it is told again."""
        pause, end = 0.001, time.monotonic() + self.client._patience
        while self.line_id and not asking.done() and time.monotonic() < end:
            [reply] = await self.client._exchange([["CLIENT", "UNBLOCK", self.line_id]], self.client._patience)
            if isinstance(reply, HoldfastError) and not reply.passing:
                return
            await asyncio.wait({asking}, timeout=pause)
            pause *= 2

    async def _begin(self, packets: list[Packet], asked: float) -> int:
        """Has handlers work on packets, and returns how many began.

        If the answer came late the leases may be over, so they are renewed first.
        """
        jobs = [Job(packet, asked) for packet in packets]
        if jobs and time.monotonic() - asked > self.lease / 3:
            await self._extend(jobs, self.lease / 3)
            for job in jobs:
                if job.renewed == asked:
                    tell("%s: a claim came too late to begin with packet %s", self.queue, job.packet.id)
            jobs = [job for job in jobs if job.renewed > asked]
        works = [Work(jobs)] if self.worker.size and jobs else [Work([job]) for job in jobs]
        for work in works:
            for job in work.jobs:
                job.work = work
                self.held[job.packet] = job
            self.works.add(work)
            work.cancel = self.runner.start([job.packet for job in work.jobs], partial(self._finish, work))
        return len(works)

    def _finish(self, work: Work, why: BaseException | None) -> None:
        """Has the answers sent that the end of a handler means, for packets that are held."""
        self.free += 1
        packet, verdict = work.jobs[0].packet, None if why is None else plain(why)
        if verdict is None or packet.lost is not None or issubclass(type(why), (Uncounted, Hold)):
            pass  # as it should be
        elif issubclass(type(why), Verdict):
            tell("%s: the handler returned packet %s: %s", self.queue, packet.id, verdict.why or type(why).__name__)
        else:
            tell("%s: the handler failed with packet %s", self.queue, packet.id, why=why)
        for job in work.jobs:
            if job.packet in self.held and not job.finished and not job.packet.answered:
                job.why, job.finished = verdict, True
                self.answers.append(job)
            else:
                self._settle(job)
        self.changed.set()

    def _settle(self, job: Job) -> None:
        self.held.pop(job.packet, None)
        job.work.left -= 1
        if job.work.left == 0:
            job.work.jobs = []  # no cycle for the garbage collector
            self.works.discard(job.work)
            self.changed.set()

    async def _answer(self) -> None:
        """Sends what handlers have answered. What comes while some are sent goes together."""
        pause = 0.0
        while True:
            await self._until(lambda: self.answers)
            batch, self.answers = self.answers[:MOST], self.answers[MOST:]
            again = await self._send(batch)
            self.answers += again
            pause = min(max(2 * pause, 0.05), 1.0) if again else 0.0
            await asyncio.sleep(pause)

    async def _send(self, batch: list[Job]) -> list[Job]:
        """Sends answers, and returns those to be sent again: without a reply, and held."""
        calls: list[tuple[requests.Request[Any], list[Job]]] = []
        done: dict[tuple[str, str], list[Job]] = {}
        for job in batch:
            if job.why is None:
                done.setdefault((job.packet.queue, str(job.packet.cost)), []).append(job)
            else:
                calls.append((requests.nack(job.packet, job.why), [job]))
        for jobs in done.values():
            calls.append((requests.ack(*(job.packet for job in jobs)), jobs))
        patience = max(self.client._patience, self.lease / 3)
        replies = await self.client._exchange([call.words for call, _ in calls], patience)
        again: list[Job] = []
        for (_, jobs), reply in zip(calls, replies):
            failed = isinstance(reply, HoldfastError)
            passing = failed and reply.passing
            if not passing and (failed or isinstance(reply, int) and reply < len(jobs)):
                self._log_refusal(jobs, reply)
            if isinstance(reply, Invalid) and not any(job.repeated for job in jobs):
                passing = True
                for job in jobs:
                    job.make_plain()
            if passing:
                again += [job for job in jobs if job.packet in self.held]
                jobs = [job for job in jobs if job.packet not in self.held]
            for job in jobs:
                job.packet.answered = not failed
                self._settle(job)
        for job in again:
            job.repeated = True
        return again

    def _log_refusal(self, jobs: list[Job], reply: Any) -> None:
        expected = all(job.repeated or job.packet.cancelled for job in jobs)
        ids, level = ", ".join(job.packet.id for job in jobs), logging.INFO if expected else logging.WARNING
        tell("%s: the answer for %s was not taken whole: %s", self.queue, ids, reply, level=level)

    async def _renew(self) -> None:
        """Looks at the leases twelve times in the time of one, and renews each at a third of it."""
        step, blocked = max(self.lease / 12, 0.001), self.lease / 4
        while True:
            late = time.monotonic() + step
            await asyncio.sleep(step)
            late = time.monotonic() - late
            if late > blocked and self.held:
                tell("%s: the event loop was blocked for %.1f s; leases of %g s cannot be renewed meanwhile",
                     self.queue, late, self.lease)  # fmt: skip
                blocked = 2 * late  # what is much worse is told again
            due = []
            for job in tuple(self.held.values()):
                age = time.monotonic() - job.renewed
                if job.packet.answered or job.packet.lost is not None:
                    continue
                if age >= self.lease - 3 * step:  # a renewal may take two, the third is the handler's
                    self._lose(job, Stale("the lease is over: the server did not answer in time"))
                elif age >= self.lease / 3:
                    due.append(job)
            if due:
                await self._extend(due, 2 * step)

    async def _extend(self, jobs: list[Job], patience: float) -> None:
        """Renews leases. What is not answered in time is tried again with the next step."""
        asked = time.monotonic()
        commands = [requests.extend(job.packet, self.lease).words for job in jobs]
        for job, reply in zip(jobs, await self.client._exchange(commands, patience)):
            if not isinstance(reply, HoldfastError):
                job.renewed = asked
            elif isinstance(reply, Cancelled) and job.packet in self.held:
                job.packet.cancelled = True  # the answer of its handler ends it before the lease does
                self._cancel(job, reply)
            elif not reply.passing:
                self._lose(job, reply)

    def _lose(self, job: Job, error: HoldfastError) -> None:
        """The packet is not the handler's any more."""
        if self.held.pop(job.packet, None) is not None and not job.finished:
            tell("%s: the lease of packet %s is lost: %s", self.queue, job.packet.id, error)
            self._cancel(job, error)

    def _cancel(self, job: Job, error: HoldfastError) -> None:
        job.packet.lost = error
        job.work.leases -= 1
        if job.work.leases == 0:
            job.work.cancel()

    async def _give_back(self) -> None:
        """Returns the packets that handlers still work on."""
        left = [job for job in self.held.values() if not job.finished and not job.packet.answered]
        why = Uncounted(0, "the worker was shut down")
        for job in left:
            del self.held[job.packet]
            self._cancel(job, Stale("the worker was shut down"))
        if left:
            self.returned += len(left)
            tell("%s: packets that were not finished: %d", self.queue, len(left))
            nacks = [requests.nack(job.packet, why).words for job in left]
            await self.client._exchange(nacks, self.client._patience)
        self.given_up = time.monotonic() + self.client._patience
        asyncio.get_running_loop().call_later(self.client._patience, self.changed.set)
        self.changed.set()
