"use strict";
module.exports = { ...require("./lib/client.js"), ...require("./lib/packet.js"), ...require("./lib/errors.js").errors };
