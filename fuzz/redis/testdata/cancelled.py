"""A worker that can be told to stop: python3 cancelled.py PORT QUEUE

It claims a packet and says its id. It renews the lease each 200 ms until the packet is cancelled,
says what it was told, and acknowledges.
"""

import sys
import time

import redis

port, queue = sys.argv[1:]
r = redis.Redis(host="127.0.0.1", port=int(port), decode_responses=True)

flat = r.execute_command("QCLAIM", queue, "LEASE", 60000, "BLOCK", 10000)[0]
packet = dict(zip(flat[::2], flat[1::2]))
claim = queue, packet["id"], packet["token"]
print(packet["id"], flush=True)
while True:
    time.sleep(0.2)
    try:
        r.execute_command("QEXTEND", *claim, 60000)
    except redis.ResponseError as error:
        if not str(error).startswith("CANCELLED "):
            raise
        print(error, flush=True)
        break
print(r.execute_command("QACK", *claim), flush=True)
