"""A consumer of a queue: python3 claims.py PORT QUEUE NAME ack|hang

It claims packets and says of each: id, token and attempt. It acknowledges them until there is none
for a while, or works at the first one until it is killed.
"""

import sys
import threading

import redis

port, queue, name, what = sys.argv[1:]
r = redis.Redis(host="127.0.0.1", port=int(port), decode_responses=True)

while True:
    packets = r.execute_command("QCLAIM", queue, "CONSUMER", name, "BLOCK", 2000)
    if not packets:
        break
    for flat in packets:
        packet = dict(zip(flat[::2], flat[1::2]))
        print(packet["id"], packet["token"], packet["attempt"], flush=True)
        if what == "hang":
            threading.Event().wait()
        r.execute_command("QACK", queue, packet["id"], packet["token"])
