"""How fast workers are beside bare commands of redis-py: python3 -m tests.bench [packets]

Each line is one way to claim and acknowledge packets, 64 at once, with a handler that does nothing.
"""

import asyncio
import statistics
import sys
import threading
import time
from typing import Any, Callable

import redis
import redis.asyncio

from holdfast_queue import AsyncClient, Client, Packet
from tests.support import URL, name

AT_ONCE = 64


def answers(queue: str, packets: list[Any]) -> list[Any]:
    """The QACK of what a bare QCLAIM gave."""
    read = [dict(zip(p[::2], p[1::2])) for p in packets]
    return ["QACK", queue, *(w for p in read for w in (p[b"id"], p[b"token"]))]


def batches(queue: str, total: int) -> None:
    """One loop of redis-py that claims 64 at a time."""
    r = redis.Redis.from_url(URL)
    while packets := r.execute_command("QCLAIM", queue, "COUNT", AT_ONCE):
        r.execute_command(*answers(queue, packets))


def singles(queue: str, total: int) -> None:
    """64 threads of redis-py, each with one packet at a time."""
    r = redis.Redis.from_url(URL)

    def run() -> None:
        while packets := r.execute_command("QCLAIM", queue):
            r.execute_command(*answers(queue, packets))

    threads = [threading.Thread(target=run) for _ in range(AT_ONCE)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def async_batches(queue: str, total: int) -> None:
    """One loop of redis.asyncio that claims 64 at a time."""
    asyncio.run(async_takers(queue, 1, AT_ONCE))


def async_singles(queue: str, total: int) -> None:
    """64 tasks of redis.asyncio, each with one packet at a time."""
    asyncio.run(async_takers(queue, AT_ONCE, 1))


async def async_takers(queue: str, tasks: int, count: int) -> None:
    r = redis.asyncio.Redis.from_url(URL)

    async def run() -> None:
        while packets := await r.execute_command("QCLAIM", queue, "COUNT", count):
            await r.execute_command(*answers(queue, packets))

    await asyncio.gather(*(run() for _ in range(tasks)))
    await r.close()


def worker(queue: str, total: int) -> None:
    """Client.consume with a concurrency of 64."""
    with Client(URL) as client:
        client.close_queue(queue)
        client.consume(queue, lambda p: None, concurrency=AT_ONCE)


def async_worker(queue: str, total: int) -> None:
    """AsyncClient.consume with a concurrency of 64."""

    async def handle(packet: Packet) -> None:
        pass

    async def main() -> None:
        async with AsyncClient(URL) as client:
            await client.close_queue(queue)
            await client.consume(queue, handle, concurrency=AT_ONCE)

    asyncio.run(main())


WAYS: list[Callable[[str, int], None]] = [batches, singles, worker, async_batches, async_singles, async_worker]


def main() -> None:
    total = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    rates: dict[str, list[float]] = {way.__name__: [] for way in WAYS}
    with Client(URL) as client:
        for _ in range(3):
            for way in WAYS:
                queue = name("bench")
                for _ in range(total // 1000):
                    client.push_batch(queue, [b"x" * 100] * 1000)
                begin = time.perf_counter()
                way(queue, total)
                rates[way.__name__].append(total / (time.perf_counter() - begin))
                assert client.len(queue) == 0, way
    for way in WAYS:
        of = rates[way.__name__]
        print(f"{statistics.median(of):8.0f} a second ({min(of):.0f} to {max(of):.0f}): {way.__doc__}")


if __name__ == "__main__":
    main()
