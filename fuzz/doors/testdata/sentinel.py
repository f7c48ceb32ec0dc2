import os

import redis.sentinel

host, port = os.environ["SENTINEL"].split(":")
finder = redis.sentinel.Sentinel([(host, int(port))])
assert finder.discover_slaves("main") == []
client = finder.master_for("main")
client.lpush("q", "hello")
print(client.rpop("q").decode())
