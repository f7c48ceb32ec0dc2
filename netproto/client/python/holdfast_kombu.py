"""Tells kombu, and so Celery, which transport holdfast:// and holdfasts:// are.

kombu has a table of transports, and no entry point that adds to it, up to 5.6. It loads the entry
points of serializers when it is imported, so one of these brings this module in. That stands outside
the package holdfast_queue, as it must be light: every program with kombu loads it.
"""
from kombu.transport import TRANSPORT_ALIASES
from kombu.utils.json import dumps, loads

TRANSPORT_ALIASES["holdfast"] = "holdfast_queue.transport:Transport"
TRANSPORT_ALIASES["holdfasts"] = "holdfast_queue.transport:TLSTransport"

#: What the entry point has to give: a serializer, here JSON by a name that nobody asks for.
serializer = (dumps, loads, "application/x-holdfast", "utf-8")
