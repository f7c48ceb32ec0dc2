"""What taskiq-redis sends with its list and its PUBLISH brokers, results and schedules: python3 taskiq.py PORT"""

import asyncio
import pickle
import sys

from redis.asyncio import BlockingConnectionPool, Redis

POOL = BlockingConnectionPool.from_url(f"redis://127.0.0.1:{sys.argv[1]}", max_connections=8)


def same(got, want):
    if got != want:
        raise AssertionError(f"got {got!r}, want {want!r}")


async def broker():
    """A worker waits before there is a task, and gets tasks in their order, byte for byte."""
    async with Redis(connection_pool=POOL) as r:
        first = asyncio.create_task(r.brpop("taskiq"))
        tasks = [pickle.dumps({"task_id": n, "args": ["\x00ü\r\n"]}) for n in range(3)]
        for n, task in enumerate(tasks):
            pushed = await r.lpush("taskiq", task)
            if n > 0:
                same(pushed, n)
            else:
                same(await first, (b"taskiq", tasks[0]))
        same([await r.brpop("taskiq"), await r.brpop("taskiq")], [(b"taskiq", task) for task in tasks[1:]])


async def broadcast():
    async with Redis(connection_pool=POOL) as r:
        channel = r.pubsub()
        await channel.subscribe("taskiq")
        messages = channel.listen()
        same((await anext(messages))["type"], "subscribe")
        same(await r.publish("taskiq", b"\xff"), 1)
        same((await anext(messages))["data"], b"\xff")
        await channel.close()


async def results():
    result = pickle.dumps({"return_value": 17})
    async with Redis(connection_pool=POOL) as r:
        same(await r.exists("id"), 0)
        for expiry in {}, {"ex": 60}, {"px": 60_000}:
            same(await r.set(name="id", value=result, **expiry), True)
            same(await r.exists("id"), 1)
            same(await r.pttl("id") > 0, bool(expiry))
            same(await r.get(name="id"), result)
        same(await r.set(name="id__progress", value=b"half", ex=60), True)
        same(await r.get(name="id__progress"), b"half")
        same([await r.getdel(name="id"), await r.getdel(name="id")], [result, None])


async def schedules():
    """A list of ids by cron, by interval and by minute, and a string for each id."""
    minute, later = "schedule:time:2026-11-27T17:00", "schedule:time:2026-11-27T17:01"
    lists = {"schedule:cron": ["a", "b"], "schedule:interval": ["c"], minute: ["d", "e"], later: ["f"]}
    async with Redis(connection_pool=POOL) as r:
        for name, ids in lists.items():
            for n, id in enumerate(ids):
                same(await r.set(f"schedule:data:{id}", id.encode()), True)
                same(await r.rpush(name, id), n + 1)
        same({key async for key in r.scan_iter("schedule:time:*")}, {minute.encode(), later.encode()})
        ids = []
        for name in lists:
            ids.extend(await r.lrange(name, 0, -1))
        same(ids, [b"a", b"b", b"c", b"d", b"e", b"f"])
        same(await r.mget(f"schedule:data:{id.decode()}" for id in ids), ids)
        same(await r.getdel("schedule:data:d"), b"d")
        same(await r.lrem(minute, 0, "d"), 1)
        same(await r.lrem(minute, 0, "e"), 1)
        same(await r.lrange(minute, 0, -1), [])
        same(await r.mget(["schedule:data:d", "schedule:data:f"]), [None, b"f"])


async def old_schedules():
    """Its older source has a string for each schedule, and no lists."""
    async with Redis(connection_pool=POOL) as r:
        for n in range(120):
            same(await r.set(f"old:{n}", b"%d" % n), True)
        keys = [key async for key in r.scan_iter("old:*")]
        same(sorted(await r.mget(keys)), sorted(b"%d" % n for n in range(120)))
        same(await r.delete("old:7"), 1)
        same(await r.mget(["old:7", "old:8"]), [None, b"8"])


async def main():
    for part in broker, broadcast, results, schedules, old_schedules:
        await part()
    await POOL.disconnect()


asyncio.run(main())
