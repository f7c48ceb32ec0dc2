"""What calls raise, and what handlers raise to say what becomes of their packet."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

from .packet import in_seconds, milliseconds


class HoldfastError(Exception):
    """The base of all errors of this package. Its text is the server's without the code, where that has answered."""

    passing = False  # whether the same request may go well a moment later


class Stale(HoldfastError):
    """The claim was answered, or its lease is over. Another consumer may have the packet.

    After an answer that had to be repeated it may also mean that the first one has arrived.
    """


class Cancelled(HoldfastError):
    """The packet of a claim was cancelled: it is gone when the claim ends."""


class NoQueue(HoldfastError):
    """The queue holds no packets and has no settings. A push makes it."""


class Full(HoldfastError):
    """The packets would exceed the bound of the queue. The option block waits for room."""


class Paused(HoldfastError):
    """The queue takes no packets for now. The option block waits for the end of the pause."""


class Closed(HoldfastError):
    """The queue takes no more packets, or it is closed and drained."""


class InUse(HoldfastError):
    """The queue has an exclusive producer or consumer, and it is not this client."""


class NoSpace(HoldfastError):
    """The server's disk or memory is nearly full. Pops and acknowledgements still work.

    Claims do not where very little memory is left.
    """

    passing = True


class WrongType(HoldfastError):
    """A string or a hash has the name."""


class TooLarge(HoldfastError):
    """A packet, a batch or a reply is beyond a limit, which the text names."""


class TooMany(HoldfastError):
    """The server accepts no more connections or logins for now."""

    passing = True


class Denied(HoldfastError):
    """The user or the password is missing or wrong. Both go into the URL."""


class Forbidden(HoldfastError):
    """The user does not have the right to make the call, or not for this queue."""


class Invalid(HoldfastError):
    """An option or an argument is wrong. The same call is refused each time."""


class NoPacket(HoldfastError):
    """The queue has no packet with this id, or none in the state that the call needs."""


class Away(HoldfastError):
    """The server could not be asked, or did not answer a call that may be repeated."""

    passing = True


class Unknown(HoldfastError):
    """The connection was lost before the answer to a request that is not repeated.

    It may have been carried out.
    """

    passing = True


# How the server's errors begin. Redis-py takes ERR away, and any first word for which it has a
# class of its own: there the name of the class tells. The first that fits counts.
_KINDS: tuple[tuple[str, type[HoldfastError]], ...] = (
    ("AuthenticationError", Denied), ("NoPermissionError", Forbidden), ("OutOfMemoryError", NoSpace),
    ("STALE ", Stale), ("CANCELLED ", Cancelled), ("NOQUEUE ", NoQueue), ("FULL ", Full),
    ("PAUSED ", Paused), ("CLOSED ", Closed), ("INUSE ", InUse), ("OOM ", NoSpace),
    ("WRONGTYPE ", WrongType), ("WRONGPASS ", Denied), ("too large", TooLarge),
    ("transaction too large", TooLarge), ("reply too large", TooLarge),
    ("the request is longer", TooLarge), ("max number of clients", TooMany), ("too many logins", TooMany),
)  # fmt: skip


def refusal(error: Exception) -> HoldfastError | None:
    """The error that the server's answer means; None if there was no answer."""
    text, names = str(error), {c.__name__ for c in type(error).__mro__}
    for sign, kind in _KINDS:
        if sign in names or text.startswith(sign):
            return kind(text.removeprefix(sign) if sign.endswith(" ") else text)  # the class says the code
    return Invalid(text) if names & {"ResponseError", "DataError"} else None


class Verdict(Exception):
    """The base of what a handler raises to say more than that it failed.

    The reason of the packet is why: a text, or an exception with its class. Without one it is the
    cause of `raise … from cause`.
    """

    why: BaseException | str = ""
    _words: tuple[Any, ...] = ()

    def __init__(self, why: BaseException | str = "", *words: Any) -> None:
        super().__init__(why)
        self.why, self._words = why, words  # a class of a program may have other words


class Dead(Verdict):
    """The packet is dead, and not tried again. It stays until somebody looks at it."""

    def __init__(self, why: BaseException | str = "") -> None:
        super().__init__(why, "DEAD")


class RetryIn(Verdict):
    """The packet is tried again after some seconds, unless it was its last attempt."""

    def __init__(self, seconds: float | timedelta, why: BaseException | str = "") -> None:
        super().__init__(why, "DELAY", milliseconds(seconds))


class Uncounted(Verdict):
    """The packet comes again after some seconds, and the claim does not count as an attempt."""

    def __init__(self, seconds: float | timedelta = 0.0, why: BaseException | str = "") -> None:
        super().__init__(why, "UNCOUNTED", "DELAY", milliseconds(seconds))


class Snooze(Uncounted):
    """No failure: the packet comes again after some seconds, and the claim does not count."""

    def __init__(self, seconds: float | timedelta) -> None:
        said = in_seconds(seconds)
        super().__init__(seconds, f"snoozed for {seconds if said == seconds else said} s")


class Hold(Verdict):
    """The other side says "not now": the share of the packet, or its queue, rests for some seconds.

    That is at least one second, and at most a day. The packet keeps its place, and the claim
    does not count as an attempt.
    """

    def __init__(self, seconds: float | timedelta, why: BaseException | str = "") -> None:
        super().__init__(why, "HOLD", milliseconds(min(max(in_seconds(seconds), 1.0), 86_400.0)))


def reason(why: BaseException | str) -> str:
    """What is sent as the reason: at most 4,096 bytes, the class before the first colon."""
    try:
        if isinstance(why, Verdict):
            why = why.why or why.__cause__ or ""
        return cut(why if isinstance(why, str) else f"{type(why).__name__}: {why}")
    except BaseException:  # of what a class of a program does when it is looked at
        return str(vars(type)["__name__"].__get__(type(why)))


def plain(why: BaseException | str) -> Verdict:
    """What an exception of a handler says, read once: its class may do anything when it is looked at."""
    words: tuple[str, ...] = ()
    with suppress(BaseException):
        if issubclass(type(why), Verdict):
            words = tuple(cut(str(word)) for word in why._words)  # type: ignore[union-attr]
    return Verdict(reason(why), *words)


def cut(text: str) -> str:
    """At most 4,096 bytes of a text, without half a letter at the end."""
    return str.encode(text, errors="replace")[:4096].decode(errors="ignore")
