"use strict";
module.exports = { ...require("./lib/client.js"), ...require("./lib/packet.js"), ...require("./lib/errors.js").errors };
// import reads the names here, in a line that does not run.
0 && (module.exports = {
  Client, Packet, HoldfastError, StaleError, CancelledError, NoQueueError, FullError, PausedError, ClosedError, InUseError,
  NoSpaceError, WrongTypeError, DeniedError, ForbiddenError, TooLargeError, TooManyError, InvalidError, NoPacketError,
  ConnectionError, UnknownError, ShutdownError, Verdict, Dead, RetryIn, Uncounted, Snooze, Hold,
});
