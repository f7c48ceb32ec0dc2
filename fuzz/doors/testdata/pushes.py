"""Pushes, or works on one packet, for the tests in which Node does the other part."""

import os, sys, threading
from holdfast_queue import Client

client = Client(os.environ["HOLDFAST_URL"])


def work(packet):
    print(packet.payload.hex(), packet.tags["from"], flush=True)
    threading.Thread(target=client.shutdown).start()


if sys.argv[1] == "push":
    client.push("jobs", bytes([0, 255, 13, 10]), tags={"from": "python"})
else:
    client.consume("jobs", work)
client.close()
