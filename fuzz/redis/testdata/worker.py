"""A worker: python3 worker.py. It claims packets, does the work, and says how each one ended."""

import os, signal, sys, threading
import redis

QUEUE, LEASE = "jobs", 30_000  # milliseconds
server = redis.Redis.from_url(os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"), socket_timeout=10)
stopping = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stopping.set())


def work(payload):
    print(payload.decode(), flush=True)  # the work


def extend(claim, done):
    while not done.wait(LEASE / 3000):  # a third of the lease, in seconds
        try:
            server.execute_command("QEXTEND", *claim, LEASE)
        except redis.RedisError as error:
            print(error, file=sys.stderr)


while not stopping.is_set():
    try:
        for p in server.execute_command("QCLAIM", QUEUE, "LEASE", LEASE, "BLOCK", 2000) or []:
            packet = p if isinstance(p, dict) else dict(zip(p[::2], p[1::2]))
            claim, done = (QUEUE, packet[b"id"], packet[b"token"]), threading.Event()
            threading.Thread(target=extend, args=(claim, done), daemon=True).start()
            try:
                work(packet[b"payload"])
                answer = ["QACK", *claim]
            except Exception as error:
                answer = ["QNACK", *claim, "REASON", str(error)[:1000]]
            finally:
                done.set()
            server.execute_command(*answer)
    except redis.RedisError as error:  # the server is away, or the lease was lost
        if str(error).startswith("CLOSED"):
            break
        print(error, file=sys.stderr)
        stopping.wait(1)
