// Package holdfast is the root of a durable single-node priority-queue server. It holds no code,
// only tests of the rules for the folders below it:
//
//	cmd        the server and its commands, which only wire; and the programs that measure
//	netproto   the edge: bytes in, bytes out, a folder for each protocol
//	broker     keeps index and storage in step; every protocol calls it and nothing else
//	recovery   from a data folder to the state that a broker starts with; below it dump, load,
//	           verify, compact and archive, and jsonbytes: how bytes stand in JSON
//	storage    the data folder; the only one that knows Badger
//	index      what is queued and what comes next; pure, in memory; its keyspace is the
//	           directory of names
//	fuzz       fuzz targets and the harness that kills servers
package holdfast
