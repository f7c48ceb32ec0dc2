"""Holdfast's work queue, over redis-py: clients for threads and for asyncio, and workers.

    client = Client("redis://127.0.0.1:6379")
    client.push("mails", "to ann", priority=10)

    @client.worker("mails", concurrency=8)
    def mail(packet: Packet) -> None:
        send(packet.payload)  # to return acknowledges it, an exception has it tried again

    client.work()  # until SIGTERM

A packet is delivered at least once: a handler may see one twice, rarely. Packet.id and Packet.token
help it to bear that. Payloads are bytes; a str is sent as UTF-8. Times are seconds or a
timedelta, moments datetime.
"""

from .client import AsyncClient, Client
from .errors import (
    Away, Cancelled, Closed, Dead, Denied, Forbidden, Full, Hold, HoldfastError, InUse, Invalid,
    NoPacket, NoQueue, NoSpace, Paused, RetryIn, Snooze, Stale, TooLarge, TooMany, Uncounted, Unknown,
    Verdict, WrongType,
)  # fmt: skip
from .packet import Packet

__all__ = [
    "AsyncClient", "Away", "Cancelled", "Client", "Closed", "Dead", "Denied", "Forbidden", "Full",
    "Hold", "HoldfastError", "InUse", "Invalid", "NoPacket", "NoQueue", "NoSpace", "Packet", "Paused",
    "RetryIn", "Snooze", "Stale", "TooLarge", "TooMany", "Uncounted", "Unknown", "Verdict", "WrongType",
]  # fmt: skip
