import all from "./index.js"; // so that import and require have the same classes

export const {
  Client, Packet, HoldfastError, StaleError, CancelledError, NoQueueError, FullError, PausedError, ClosedError, InUseError,
  NoSpaceError, WrongTypeError, DeniedError, ForbiddenError, TooLargeError, TooManyError, InvalidError, NoPacketError,
  ConnectionError, UnknownError, ShutdownError, Verdict, Dead, RetryIn, Uncounted, Snooze, Hold,
} = all;
