"""A worker: python3 worker.py. It uses the package of netproto/client/python, whose README tells more."""

import os

from holdfast_queue import Client, Packet

client = Client(os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"))


@client.worker("jobs", concurrency=1, lease=30.0)
def work(packet: Packet) -> None:
    print(packet.payload.decode(), flush=True)  # the work


client.work()  # until SIGTERM comes, and the work is done that has begun
