// Package client is the Go client of Holdfast's work queue, over go-redis. A program pushes packets
// into queues; workers claim them, work, and acknowledge them:
//
//	c := client.New(&redis.Options{Addr: "127.0.0.1:6379"})
//	defer c.Close()
//	if _, err := c.Push(ctx, "mails", payload, client.Priority(10)); err != nil {
//		return err
//	}
//	return c.Consume(ctx, "mails", func(ctx context.Context, p *client.Packet) error {
//		return send(ctx, p.Payload)
//	}, client.Concurrency(8))
//
// A handler that returns nil acknowledges its packet; an error returns it, to be tried again.
// [Dead] and [RetryIn] wrap an error to say more, and [Snooze] puts the packet off. [Handle] makes
// a handler of typed payloads.
//
// # The promise
//
// When Push returns without an error, the packet is on the server's disk. It is delivered at least
// once: a worker that dies, or that does not renew its lease, loses the packet to another one. So a
// handler may see a packet twice, rarely, and two handlers may have it at once, if the first one
// does not stop when its context ends. What a handler does should bear that:
//
//   - do the same again without harm: set a value, do not add to it;
//   - or remember [Packet.ID] where the work is stored, in the same transaction;
//   - or give [Packet.Token] to the system that is written to, and have it refuse a lower one than
//     it saw. Tokens rise with each claim, over the whole store.
//
// A packet that fails is tried again after a pause that doubles, and is dead after the last of its
// attempts. They are settings of its queue:
//
//	err := c.Set(ctx, "mails", "max-attempts", 10, "backoff-min", 5*time.Second, "backoff-max", time.Hour)
//
// Dead packets stay until somebody looks at them: [Client.Redrive] tries them again.
//
// # A lost connection
//
// A request that does something twice when it is sent twice is sent once: [Client.Push],
// [Client.Pop], [Client.Claim], and the calls that move or delete. If the connection is lost before
// the answer, their error is [ErrUnknown]. A push that may be there can be repeated safely if it
// has [Unique]. Claims that may have been made end with their lease. Pop may lose packets so; Claim
// does not.
//
// The same holds for an answer that came too late for the deadline of the context. A context that
// is cancelled ends a wait, and no more: other calls take an answer that comes within ReadTimeout,
// and [Client.Purge], Harvest, Redrive and MoveAll wait for theirs without end. A deadline ends
// them all.
//
// An answer is waited for as long as the next part of it comes within ReadTimeout: packets over a
// slow line are not lost. A long request has no more than that time.
//
// Where a server does not greet a connection nothing was sent, and all is repeated as often as
// MaxRetries says. So a call that is made while another node of a cell takes over waits for that,
// if it goes through a node that lives: give New the addresses of all.
//
// Everything else is repeated by go-redis, as often as MaxRetries says. After that, [ErrStale] of
// an Ack or a Nack may mean that the first one has arrived. [Client.Consume] goes on claiming when
// the server is back, and repeats its answers until one comes or the lease is over.
//
// # The end of a program
//
// [Client.Shutdown] lets the handlers finish: call it when the program gets a signal. The end of
// the context that Consume got ends the contexts of the handlers at once. What does not end by
// itself is a lease: the packets of a program that is killed come back after 30 seconds, or what
// [Lease] says.
//
// # Encryption and users
//
// The options of [New] say who the client is, and how it encrypts:
//
//	roots := x509.NewCertPool()
//	roots.AppendCertsFromPEM(ca) // the file of the CA that has signed the server's certificate
//	c := client.New(&redis.Options{
//		Addr: "queue.example.com:6379", Username: "ann", Password: password,
//		TLSConfig: &tls.Config{RootCAs: roots},
//	})
//
// Without a Username the user is default. A client certificate, in TLSConfig.Certificates, can take
// the place of both. [ErrDenied] is a login that failed; [ErrForbidden] a right that is missing.
//
// # Options and errors
//
// Options are words of the server's commands, so its COMMANDS.md says which ones a call takes, and
// their limits. The server refuses any other. Times are sent as whole milliseconds, rounded up.
//
// Errors are told apart by errors.Is, and their text is the server's. Go-redis logs a server that
// is away on standard error: redis.SetLogger changes that.
package client

// The files: client.go has the connections and how a request is sent, nodes.go where they go,
// slow.go how long they wait for an answer, wait.go those that wait for more; option.go, filter.go
// and errors.go what calls take and give; push.go, take.go, packet.go, admin.go, stats.go and
// tail.go the calls; consume.go, handler.go, answer.go and lease.go the worker; codec.go typed
// payloads.
