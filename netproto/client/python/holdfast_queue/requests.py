"""Each call of the clients, once: its words, how its reply is read, and whether it is repeated."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar, Union

from .errors import Full, Invalid, NoPacket, cut, plain
from .packet import (
    Packet, content, figures, in_seconds, milliseconds, packet, packets, pairs, rows, text, texts, unix,
)  # fmt: skip

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")
Time = Union[float, timedelta]  # seconds, where it is a number
TURN = 30.0  # the longest wait in seconds that one take asks for, so that a dead line is noticed
PUSH_TURN = 600.0  # of a push: it goes to the end of the line with each one


@dataclass
class Request(Generic[T]):
    """A request that is not sent yet."""

    words: Sequence[Any]
    read: Callable[[Any], T]
    again: bool = True  # it may be sent again when its answer is lost
    block: float | None = None  # for how many seconds it waits in the server, turn by turn
    turn: float = TURN
    extra: float = 0.0  # how long the answer may take besides


class PushOptions(TypedDict, total=False):
    """The options of push. Times are seconds or a timedelta."""

    priority: int  # 1 is best, 128 the default; 0 goes only together with another one of its key
    key: bytes | str  # of the group that a take with group takes together
    ttl: Time  # how long the packet lasts if nobody takes it
    delay: Time  # how long it waits before it is delivered
    at: datetime  # the moment before which it is not delivered
    tags: Mapping[str, str]  # names and values, by which filters select
    producer: str  # who pushes
    lease: Time  # how long those claims of it last that say no lease
    meta: bytes | str  # what goes beside the payload, up to 4,096 bytes
    unique: str  # nothing is added while a packet with this id waits or is claimed
    window: Time  # how long that id stands for the first packet, whatever becomes of it
    until_claim: bool  # that id is free when work on its packet begins
    replace: bool  # a waiting packet with that id gets what this push brings
    block: Time  # waits so long for room; math.inf without end


class SelectOptions(TypedDict, total=False):
    """Which packets are meant."""

    where: Iterable[tuple[str, str, str]]  # tag, one of = != < <= > >=, value; all must be true
    match_any: int  # so many of them must be true
    share: str  # the packets of this share


class ClaimOptions(SelectOptions, total=False):
    """What consume, pop and claim have in common; pop takes neither consumer nor lease."""

    others: Sequence[str]  # more queues: the first that has a packet gives it
    newest: bool  # of the best priority the newest; the oldest is the default
    consumer: str  # who claims: the name of the client unless given
    lease: Time  # how long a claim lasts: 30 in consume, else what the queue says


class WorkOptions(ClaimOptions, total=False):
    """The options of consume. Times are seconds or a timedelta."""

    concurrency: int  # how many handlers run at once, 1 unless given
    burst: bool  # ends when there is nothing to claim, and no handler runs; delayed packets are not waited for


class TakeOptions(ClaimOptions, total=False):
    """The options of pop and claim. Times are seconds or a timedelta."""

    count: int  # at most so many: 1 to 1,000, 1 unless given
    group: bool  # with a packet all others of its key, up to 1,000
    block: Time  # waits so long for a packet; math.inf without end
    fill: Time  # of claim: waits until there are count packets, and so long after there is one


class BulkOptions(SelectOptions, total=False):
    """The options of list, purge, harvest, redrive and move_all; each takes some of them."""

    state: str  # the packets in one state
    count: int  # at most so many
    older: Time  # claims that are at least so old
    consumer: str  # the claims of one consumer
    dry_run: bool  # counts, and changes nothing


class ShareOptions(TypedDict, total=False):
    """What one share of a queue has of its own."""

    weight: int  # so many turns where others have one, 1 to 1,000
    max_claimed: int  # how many of its packets are claimed at once
    rate: str  # how fast its packets are taken, such as 10/1m; no takes that back
    rest: Time  # nothing of it is delivered for so long; 0 ends that


_OPERATORS = {"=": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_NAMES = {"priority": "PRIO", "rest": "HOLD", "dry_run": "DRYRUN"}
_TIMES = {"lease", "backoff-min", "backoff-max", "retain", "retain-dead", "alert-age"}  # settings
_SECONDS = {"ttl", "delay", "lease", "window", "fill", "older", "rest"}
_WORDS: dict[str, Callable[[Any], list[Any]]] = {
    "at": lambda v: ["AT", unix(v, "at")],
    "key": lambda v: ["KEY", content(v, "key")],
    "meta": lambda v: ["META", content(v, "meta")],
    "tags": lambda v: [w for tag in v.items() for w in ("TAG", *tag)],
    "until_claim": lambda v: ["UNTIL", "claim"],
    "others": lambda v: [w for queue in v for w in ("OR", queue)],
    "where": lambda v: [w for t, op, x in v for w in ("FILTER", t, _OPERATORS.get(op, op), x)],
    "match_any": lambda v: ["MATCH", "ANY", v],
}


def words(options: Mapping[str, Any], known: Any) -> list[Any]:
    """The words of options. Those with None or False are not given."""
    if unknown := options.keys() - known.__annotations__.keys():
        raise TypeError(f"{min(unknown)} is no option here: there are {', '.join(known.__annotations__)}")
    said: list[Any] = []
    for name in sorted(options, key=lambda name: name != "others"):  # OR stands behind the queue
        value, word = options[name], _NAMES.get(name, name.upper().replace("_", "-"))
        if value is None or value is False:
            continue
        if name in _WORDS:
            said += _WORDS[name](value)
        elif value is True:
            said.append(word)
        else:
            said += [word, milliseconds(value, name) if name in _SECONDS else value]
    return said


def _nothing(reply: Any) -> None:
    return None


def _block(options: dict[str, Any]) -> float | None:
    block = options.pop("block", None)
    return block if block is None else in_seconds(block, "block")


def _push(command: list[Any], options: dict[str, Any], read: Callable[[Any], T]) -> Request[T]:
    block = _block(options)

    def checked(reply: Any) -> T:
        if reply is None or isinstance(reply, list) and None in reply:
            worse, late = " of packets that are not worse", ", or paused, and no room came in time"
            raise Full("the queue is full" + (worse if block is None else late))
        return read(reply)

    return Request(command + words(options, PushOptions), checked, False, block, PUSH_TURN)


def push(queue: str, payload: bytes | str, **options: Unpack[PushOptions]) -> Request[str]:
    """Adds a packet to a queue and returns its id: it is on the server's disk then.

    A push is sent once: Unknown says that the packet may be there. With unique it is safe to push
    again. In a queue that is full or paused it waits if it has block, else it raises Full or
    Paused. Where the setting full of a queue is block, give block, too. One that waits notices a
    network that has gone silent after ten minutes. Options: PushOptions.
    """
    return _push(["QPUSH", queue, content(payload)], {**options}, text)


def push_told(queue: str, payload: bytes | str, **options: Unpack[PushOptions]) -> Request[tuple[str, str]]:
    """Push with unique, which returns the id and what became of the push.

    That is new, replaced, or the state of the packet that has the id: ready, delayed, claimed,
    damaged, and with a window also dead, done or gone.
    """
    told = ["QPUSH", queue, content(payload), "TELL"]
    return _push(told, {**options}, lambda reply: (text(reply[0]), text(reply[1])))


def push_batch(queue: str, payloads: Sequence[bytes | str], **options: Unpack[PushOptions]) -> Request[list[str]]:
    """Adds up to 1,000 packets, all or none of them, and returns their ids in the same order.

    The options hold for each. Unique is not among them.
    """
    if not payloads:
        return Request([], lambda reply: [])
    return _push(["QMPUSH", queue, len(payloads), *map(content, payloads)], {**options}, texts)


def _take(command: str, queue: str, options: dict[str, Any]) -> Request[list[Packet]]:
    block, fill = _block(options), in_seconds(options.get("fill") or 0.0, "fill")
    return Request([command, queue, *words(options, TakeOptions)], packets, False, block, extra=fill)


def pop(queue: str, **options: Unpack[TakeOptions]) -> Request[list[Packet]]:
    """Takes packets for good: the best, and of those the oldest. None when there is none in time.

    It is sent once: packets in an answer that gets lost are lost, too. Options: TakeOptions.
    """
    return _take("QPOP", queue, {**options})


def claim(queue: str, **options: Unpack[TakeOptions]) -> Request[list[Packet]]:
    """Takes packets for the time of a lease: 30 s unless the queue or lease says otherwise.

    One that is neither acknowledged nor returned by then goes to another consumer. It is sent once:
    claims in an answer that gets lost end with their lease. Options: TakeOptions.
    """
    return _take("QCLAIM", queue, {**options})


def _answer(words: list[Any], packets: Sequence[Packet], read: Callable[[Any], T]) -> Request[T]:
    def mark(reply: Any) -> T:
        for packet in packets:
            packet.answered = True
        return read(reply)

    return Request(words + (["COST", str(packets[0].cost)] if packets[0].cost not in (0, 1) else []), mark)


def ack(*packets: Packet) -> Request[int]:
    """Ends packets of one queue and cost: they are done. Returns how many claims were good.

    The claim of a single packet that has ended is Stale. It is repeated when the connection is
    lost, so after that it may also mean success.
    """
    if len({(p.queue, str(p.cost)) for p in packets}) != 1:
        raise Invalid("ack: expected packets of one queue and one cost")
    claims = [w for p in packets for w in (p.id, p.token)]
    return _answer(["QACK", packets[0].queue, *claims], packets, int)


def nack(packet: Packet, why: BaseException | str = "") -> Request[str]:
    """Returns a packet, as the exception of a handler does, and returns its new state.

    It is delivered again after the queue's backoff, or dead after its last attempt. Dead, RetryIn,
    Snooze, Uncounted and Hold say otherwise. A state may also be expired or cancelled.
    """
    said: list[Any] = ["QNACK", packet.queue, packet.id, packet.token]
    verdict = plain(why)
    if verdict.why:
        said += ["REASON", verdict.why]
    said += verdict._words
    return _answer(said, [packet], text)


def extend(packet: Packet, seconds: Time) -> Request[None]:
    """Has the lease end so many seconds from now, as consume does it by itself.

    Raises Stale if the claim has ended, and Cancelled if the packet was cancelled.
    """
    return Request(["QEXTEND", packet.queue, packet.id, packet.token, milliseconds(seconds)], _nothing)


def progress(packet: Packet, percent: int, note: str = "") -> Request[None]:
    """Says how far the work has come, 0 to 100, and in words of up to 4,096 bytes.

    It does not extend the lease. Raises Stale if the claim has ended.
    """
    return Request(["QPROGRESS", packet.queue, packet.id, packet.token, percent, cut(note)], _nothing)


def peek(queue: str, count: int = 10) -> Request[list[Packet]]:
    """Up to 1,000 packets that would be taken next, in order."""
    return Request(["QPEEK", queue, "COUNT", count], packets)


def listing(queue: str, cursor: str = "0", **options: Unpack[BulkOptions]) -> Request[tuple[str, list[Packet]]]:
    """A page of the packets of a queue, state by state, and the cursor of the next page.

    The cursor is "0" at the start and at the end. Takes state, share, where, match_any, count.
    """
    said = ["QLIST", queue, *words({"count": 100, **options}, BulkOptions), "CURSOR", cursor]
    return Request(said, lambda reply: (text(reply[0]), packets(reply[1])))


def show(queue: str, id: str) -> Request[Packet]:
    """A packet with all that is known of it, and why it is not delivered now. Raises NoPacket."""

    def read(reply: Any) -> Packet:
        if reply is None:
            raise NoPacket(f"no packet {id} in {queue}")
        return packet(reply)

    return Request(["QSHOW", queue, id], read)


def length(queue: str) -> Request[int]:
    """How many packets of a queue are ready, delayed or claimed: 0 if there is no such queue."""
    return Request(["QLEN", queue], int)


def queues(pattern: str = "*") -> Request[list[str]]:
    """The names of the queues that match a pattern, such as mail.*"""
    return Request(["QUEUES", "MATCH", pattern], lambda reply: sorted(texts(reply)))


def stats(queue: str) -> Request[dict[str, Any]]:
    """The figures of a queue by the names of QSTAT, times in milliseconds. Raises NoQueue."""
    return Request(["QSTAT", queue], figures)


def consumers(queue: str) -> Request[list[dict[str, Any]]]:
    """Who claims packets of a queue, or waits for them: the columns of QCONSUMERS."""
    return Request(["QCONSUMERS", queue], rows)


def producers(queue: str) -> Request[list[dict[str, Any]]]:
    """Who pushed packets to a queue in the last ten minutes: the parts of QPRODUCERS."""
    return Request(["QPRODUCERS", queue], rows)


def shares(queue: str, after: str = "0") -> Request[tuple[str, list[dict[str, Any]]]]:
    """A page of up to 1,000 shares of a queue, and the cursor of the next page: "0" at the end.

    Each has the entries of QSHARES, times in milliseconds.
    """
    return Request(["QSHARES", queue, "AFTER", after, "COUNT", 1000], lambda reply: (text(reply[0]), rows(reply[1])))


def set_share(queue: str, share: str, **options: Unpack[ShareOptions]) -> Request[None]:
    """Says what one share of a queue has of its own; what is not given stays. See ShareOptions."""
    return Request(["QSHARE", queue, share, *words(options, ShareOptions)], _nothing)


def reset_share(queue: str, share: str) -> Request[None]:
    """Forgets what one share of a queue has of its own."""
    return Request(["QSHARE", queue, share, "RESET"], _nothing)


def set_(queue: str, settings: Mapping[str, Any], *, force: bool = False) -> Request[None]:
    """Changes settings of a queue by their names, all or none. It makes the queue.

    With force more than 10,000 packets may move, for share-by or strict. Nobody is served meanwhile.

    Times are seconds or a timedelta. The value of enum is a list of the tag and its values, and
    comes last: ``{"max-attempts": 3, "lease": 60, "enum": ["class", "low", "high"]}``.
    """
    said: list[Any] = ["FORCE"] if force else []
    for name, value in settings.items():
        values = value if isinstance(value, (list, tuple)) else [value]
        if name.lower() in _TIMES:
            values = [milliseconds(value, name)]
        said += [name, *(int(v) if isinstance(v, bool) else v for v in values)]
    return Request(["QSET", queue, *said], _nothing)


def get(queue: str) -> Request[dict[str, Any]]:
    """The settings of a queue by name: texts, and seconds where set takes a time.

    The order of a tag's values is "enum TAG", with commas.
    """

    def read(reply: Any) -> dict[str, Any]:
        raw = {text(name): value for name, value in pairs(reply)}
        orders = {f"enum {text(tag)}": ",".join(texts(order)) for tag, order in pairs(raw.pop("enum", ()))}
        return {**{n: int(v) / 1000 if n in _TIMES else text(v) for n, v in raw.items()}, **orders}

    return Request(["QGET", queue], read)


def pause(queue: str, until: datetime | None = None, pushes: bool = False) -> Request[None]:
    """Has a queue give nothing, or with pushes take nothing: until a moment, or until resume."""
    if until is None:
        return Request(["QSET", queue, "pause-in" if pushes else "pause-out", 1], _nothing)
    return _pause_until(queue, unix(until, "until"), pushes)


def resume(queue: str, pushes: bool = False) -> Request[None]:
    """Ends a pause: the queue gives packets again, or with pushes takes them."""
    return _pause_until(queue, 0, pushes)


def _pause_until(queue: str, moment: int, pushes: bool) -> Request[None]:
    return Request(["QPAUSE", queue, *(["IN"] if pushes else []), "UNTIL", moment], _nothing)


def close_queue(queue: str) -> Request[bool]:
    """Has a queue take no more packets, for ever. False if it was closed before."""
    return Request(["QCLOSE", queue], bool, False)


def drop(queue: str) -> Request[None]:
    """Ends a queue with its packets, claimed ones too, and its settings."""
    return Request(["QDROP", queue], _nothing, False)


def _bulk(command: list[Any], options: Mapping[str, Any]) -> Request[int]:
    return Request(command + words(options, BulkOptions), int, False, extra=math.inf)


def purge(queue: str, **options: Unpack[BulkOptions]) -> Request[int]:
    """Deletes packets, claimed ones too, and returns how many. Takes state, dry_run and filters.

    Purge, harvest, redrive and move_all work in slices: after an error a part may be done.
    """
    return _bulk(["QPURGE", queue], options)


def harvest(queue: str, **options: Unpack[BulkOptions]) -> Request[int]:
    """Ends claims: their packets are ready again. Takes older, consumer, dry_run and filters."""
    return _bulk(["QHARVEST", queue], options)


def redrive(queue: str, to: str = "", **options: Unpack[BulkOptions]) -> Request[int]:
    """Makes dead packets ready again, with no attempts, in another queue if that is given.

    Takes count, dry_run and filters.
    """
    return _bulk(["QREDRIVE", queue, *(["TO", to] if to else [])], options)


def move_all(queue: str, to: str, **options: Unpack[BulkOptions]) -> Request[int]:
    """Moves packets but claimed ones. Takes state, count, dry_run and filters."""
    return _bulk(["QMOVE", queue, "TO", to], options)


def _one(command: list[Any], again: bool = True) -> Request[None]:
    def read(reply: Any) -> None:
        if not reply:
            raise NoPacket(f"no packet {command[2]} in {command[1]} for {command[0]}")

    return Request(command, read, again)


def redrive_packet(queue: str, id: str) -> Request[None]:
    """Makes a dead packet ready again, with no attempts. Raises NoPacket."""
    return _one(["QREDRIVE", queue, id], False)


def set_priority(queue: str, id: str, priority: int) -> Request[None]:
    """Changes the priority of a packet. Raises NoPacket."""
    return _one(["QPRIO", queue, id, priority])


def reschedule(queue: str, id: str, at: datetime | None = None) -> Request[None]:
    """Has a packet that waits be ready at a moment, or now. Raises NoPacket."""
    return _one(["QRUN", queue, id, "AT", unix(at) if at else 0])


def reschedule_in(queue: str, id: str, seconds: Time) -> Request[None]:
    """Reschedule for a while from now, by the clock of the server."""
    return _one(["QRUN", queue, id, "DELAY", milliseconds(seconds)])


def move(queue: str, to: str, *ids: str) -> Request[int]:
    """Moves packets to another queue, with id, priority, age and state: returns how many."""
    return Request(["QMOVE", queue, *ids, "TO", to], int, False)


def delete(queue: str, *ids: str) -> Request[int]:
    """Deletes packets in any state, and returns how many there were."""
    return Request(["QDEL", queue, *ids], int, False)


def cancel(queue: str, *ids: str) -> Request[list[str]]:
    """Has packets not be worked on, and says of each what it did.

    "gone" if it waited, "told" if it is claimed, "" if it is not there or has ended. The handler of
    one that is told learns of it when its lease is renewed next; the packet goes with its claim.
    """
    return Request(["QCANCEL", queue, *ids], lambda reply: ["" if v is None else text(v) for v in reply], False)
