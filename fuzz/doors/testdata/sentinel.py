"""Pushes and pops as a client of Sentinel, and says so before and behind. Nothing is sent twice."""

import os
import sys
import time

import redis.sentinel

nodes = [node.split(":") for node in os.environ["SENTINEL"].split(",")]
finder = redis.sentinel.Sentinel([(host, int(port)) for host, port in nodes])
assert finder.discover_slaves("main") == []
client, queue = finder.master_for("main"), os.environ["QUEUE"]
for n in range(int(os.environ["ROUNDS"])):
    try:
        print(f"push 0-{n}", flush=True)
        client.lpush(queue, f"0-{n}")
        print(f"pushed 0-{n}\npop", flush=True)
        print("popped", (client.rpop(queue) or b"nothing").decode(), flush=True)
    except redis.RedisError as error:
        print(error, file=sys.stderr)
        time.sleep(0.02)  # it may be refused at once
