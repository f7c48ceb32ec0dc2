"""What the server tells: packets, and maps of figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta, timezone
from numbers import Real
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import HoldfastError


@dataclass(eq=False)
class Packet:
    """A packet as the server shows it. What does not apply is empty or None.

    Moments are in UTC, durations in seconds. A packet that was claimed before is named by its id,
    queue and token: ``Packet("6", "mails", token=9)``.
    """

    id: str  # stays the same through claims, returns, death and moves
    queue: str
    payload: bytes = b""
    priority: int = 0  # 1 is best
    attempt: int = 0  # how many times it was claimed
    key: bytes | None = None  # of its group
    tags: dict[str, str] = field(default_factory=dict)
    producer: str = ""  # who pushed it, if that was said
    lease: float | None = None  # how long a claim without one lasts, if the push said so
    meta: bytes | None = None  # what was pushed beside the payload
    unique: str = ""  # the id of a unique push without a window
    enqueued: datetime | None = None  # when it was pushed
    expires: datetime | None = None  # when it goes, unless it is claimed then
    not_before: datetime | None = None  # when a delayed one becomes ready
    token: int = 0  # of its claim; tokens rise over the whole store
    lease_end: datetime | None = None  # when its claim ended by itself, as it was read
    cancelled: bool = False  # it is claimed, and gone when the claim ends
    consumer: str = ""  # who claimed it last
    state: str = ""  # ready, delayed, claimed, dead, done, damaged; empty for one that pop took
    reason: str = ""  # why it came back or died, the last time
    last_error_class: str = ""  # what the reason says before its first colon
    died: datetime | None = None  # when a dead one died
    progress: int | None = None  # how far its consumer has come, in percent
    progress_text: str = ""
    origin: str = ""  # the queue where it died, if that has a dead-letter queue
    first_claim: datetime | None = None  # of show, as all that follow
    last_claim: datetime | None = None
    behind: int | None = None  # how many packets come before it
    why: str = ""  # why it is not delivered now

    # What follows is of this program.
    cost: int = 1  # as how many takes rates count the claim; set it before the packet is answered
    answered: bool = False  # acknowledged or returned
    lost: HoldfastError | None = None  # in a handler: why the packet is not its own any more

    def check(self) -> None:
        """Raises what `lost` says, if it says something. Long work calls it now and then."""
        if self.lost is not None:
            raise self.lost


def in_seconds(time: float | timedelta, name: str = "a time") -> float:
    """A time as seconds. Raises TypeError for what is none, such as "60"."""
    if isinstance(time, timedelta):
        return time.total_seconds()
    if not isinstance(time, Real) or isinstance(time, bool):
        raise TypeError(f"{name}: expected seconds or a timedelta, not {time!r}")
    return float(time)


def milliseconds(time: float | timedelta, name: str = "a time") -> int:
    """Rounds up, so that no time becomes 0, which often means never."""
    if not math.isfinite(seconds := in_seconds(time, name)):
        raise ValueError(f"{name}: expected a time that ends, not {seconds}")
    return max(0, math.ceil(round(seconds * 1000, 3)))


def unix(moment: datetime, name: str = "a moment") -> int:
    """Milliseconds since 1970, for the server. Raises TypeError for what is no datetime."""
    if not isinstance(moment, datetime):
        raise TypeError(f"{name}: expected a datetime, not {moment!r}")
    return max(0, math.floor(moment.timestamp() * 1000))


def content(value: bytes | str, name: str = "a payload") -> bytes | str:
    """A payload as it was given. Raises TypeError for what is neither bytes nor a text."""
    if not isinstance(value, (bytes, memoryview, str)):
        raise TypeError(f"{name}: expected bytes or a str, not {value!r}; json.dumps makes a str of most things")
    return value


def text(value: Any) -> str:
    """A text of the server. What is no UTF-8 in it goes back as the same bytes."""
    return value.decode(errors="surrogateescape") if isinstance(value, bytes) else str(value)


def texts(value: Any) -> list[str]:
    return [text(v) for v in value]


def pairs(reply: Any) -> Iterable[tuple[bytes, Any]]:
    """The pairs of a map: a dict in RESP3, a list of names and values in RESP2."""
    return reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2])


def mapping(reply: Any) -> dict[str, str]:
    return {text(name): text(value) for name, value in pairs(reply)}


def _moment(value: int) -> datetime:
    return datetime.fromtimestamp(value / 1000, timezone.utc)


# How the fields of a packet are read, by their types.
_READ: dict[str, Callable[[Any], Any]] = {
    "str": text, "int": int, "int | None": int, "bool": bool, "bytes": bytes, "bytes | None": bytes,
    "float | None": lambda v: v / 1000, "datetime | None": _moment, "dict[str, str]": mapping,
}  # fmt: skip
# The fields by the names that the server gives them.
_PLACES = {
    f.name.replace("_", "-").encode(): (f.name, _READ[str(f.type)]) for f in fields(Packet) if str(f.type) in _READ
}


def packet(reply: Any) -> Packet:
    """Reads a packet."""
    values = {}
    for name, value in pairs(reply):
        if name in _PLACES and value is not None:
            field_name, read = _PLACES[name]
            values[field_name] = read(value)
    return Packet(**values)


def packets(reply: Any) -> list[Packet]:
    """Reads an array of packets; the null is none."""
    return [packet(one) for one in reply or ()]


def figures(reply: Any) -> dict[str, Any]:
    """Reads a map that is no packet: texts, numbers, lists of texts, and maps in two places."""
    maps, values = ("priorities", "waiting"), {text(name): value for name, value in pairs(reply)}
    for name, value in values.items():
        if isinstance(value, list):
            values[name] = [figures(one) for one in value] if name in maps else texts(value)
        elif isinstance(value, bytes):
            values[name] = text(value)
    return values


def rows(reply: Any) -> list[dict[str, Any]]:
    """Reads an array of such maps."""
    return [figures(one) for one in reply]
