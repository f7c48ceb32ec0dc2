"""What redis-py does for rfq and pressure: python3 redis_py.py PORT"""

import sys
import threading

import redis

PORT = int(sys.argv[1])


def connect():
    return redis.Redis(host="127.0.0.1", port=PORT, decode_responses=True)


def same(got, want):
    if got != want:
        raise AssertionError(f"got {got!r}, want {want!r}")


def publish(r, topic, msgid, message, front=False):
    with r.pipeline() as tx:
        tx.hset(f"rfq:{topic}:message:{msgid}", mapping=message)
        (tx.rpush if front else tx.lpush)(f"rfq:{topic}:backlog", msgid)
        tx.execute()


def consume(r, topic):
    backlog, nextlog = f"rfq:{topic}:backlog", f"rfq:{topic}:nextlog"
    while True:
        try:
            with r.pipeline() as tx:
                tx.watch(f"rfq::{topic}:backlog", f"rfq::{topic}:nextlog")
                msgid = tx.brpoplpush(backlog, nextlog)
                tx.multi()
                tx.hgetall(f"rfq:{topic}:message:{msgid}")
                return msgid, tx.execute()[0]
        except redis.WatchError:
            continue


def commit(r, topic, msgid):
    with r.pipeline() as tx:
        tx.lrem(f"rfq:{topic}:nextlog", 1, msgid)
        tx.lrem(f"rfq:{topic}:backlog", 1, msgid)
        tx.delete(f"rfq:{topic}:message:{msgid}")
        same(tx.execute(), [1, 0, 1])


def harvest(r, topic):
    seen = []
    while True:
        msgid = r.rpoplpush(f"rfq:{topic}:nextlog", f"rfq:{topic}:backlog")
        if msgid is None or msgid in seen:
            return seen
        seen.append(msgid)


def test_rfq(r):
    for i in range(3):
        publish(r, "py", f"id{i}", {"n": i, "op": "tile"})
    same(consume(r, "py"), ("id0", {"n": "0", "op": "tile"}))
    same(consume(r, "py"), ("id1", {"n": "1", "op": "tile"}))
    commit(r, "py", "id0")
    same(harvest(r, "py"), ["id1"])
    same(r.lrange("rfq:py:backlog", 0, -1), ["id1", "id2"])
    same(r.keys("rfq:*:backlog"), ["rfq:py:backlog"])
    with r.pipeline() as tx:
        tx.llen("rfq:py:backlog").llen("rfq:py:nextlog")
        same(tx.execute(), [2, 0])
    with r.pipeline() as tx:
        tx.watch("rfq:py:backlog")
        same(tx.lrange("rfq:py:backlog", -1, -1), ["id2"])
        tx.multi()
        tx.rpop("rfq:py:backlog")
        tx.delete("rfq:py:message:id2")
        same(tx.execute(), ["id2", 1])
    same("redis_version" in r.info("server"), True)


def test_pressure(r):
    """A bounded queue: the producer waits for room until the consumer makes it."""
    key = "__pressure__:py"
    same(r.setnx(f"{key}:bound", 1), True)
    for name in ("producer_free", "consumer_free", "not_full"):
        same(r.lpush(f"{key}:{name}", 0), 1)

    def put(c, value):
        same(c.exists(f"{key}:bound"), 1)
        c.brpop(f"{key}:producer_free", 0)
        c.set(f"{key}:producer", "uid")
        same(c.exists(f"{key}:closed"), 0)
        c.brpop(f"{key}:not_full", 0)
        same(c.lpush(key, value), 1)
        c.incrby(f"{key}:stats:produced_messages", 1)
        c.lpush(f"{key}:producer_free", 0)

    def get(c):
        c.brpop(f"{key}:consumer_free", 0)
        c.set(f"{key}:consumer", "uid")
        name, value = c.brpop([key, f"{key}:closed"], 0)
        if name == key:
            c.lpush(f"{key}:not_full", 0)
            c.ltrim(f"{key}:not_full", 0, 0)
        c.lpush(f"{key}:consumer_free", 0)
        return value if name == key else None

    def produce():
        c = connect()
        for i in range(20):
            put(c, i)
        same(c.lpush(f"{key}:closed", 0, 0), 2)

    producer = threading.Thread(target=produce)
    producer.start()
    same([get(r) for _ in range(21)], [str(i) for i in range(20)] + [None])
    producer.join()
    same(r.get(f"{key}:stats:produced_messages"), "20")


def test_rest(r):
    same(r.brpop("nothing", 0.01), None)
    same(r.set("s", "x", nx=True, ex=100), True)
    same(r.set("s", "y", nx=True), None)
    same(0 < r.ttl("s") <= 100, True)
    try:
        r.lpush("s", "x")
        raise AssertionError("LPUSH to a string is not refused")
    except redis.ResponseError as err:
        same(str(err).startswith("WRONGTYPE"), True)
    same(sorted(r.scan_iter("s*")), ["s"])
    sub = r.pubsub()
    sub.subscribe("news")
    same(sub.get_message(timeout=30)["type"], "subscribe")
    same(r.publish("news", "hello"), 1)
    same(sub.get_message(timeout=30)["data"], "hello")


for test in (test_rfq, test_pressure, test_rest):
    test(connect())
