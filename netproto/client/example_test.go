package client_test

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

// A program that pushes a packet, and works on packets until a signal.
func Example() {
	ctx, signals := context.Background(), make(chan os.Signal, 1)
	send := func(_ context.Context, mail []byte) error {
		fmt.Printf("%s\n", mail)
		signals <- os.Interrupt // in a real program: by signal.Notify
		return nil
	}

	c := client.New(&redis.Options{Addr: address()})
	_, err := c.Push(ctx, "mails", []byte("to ann"), client.Priority(10), client.Unique("welcome-17"))
	if err != nil {
		log.Fatal(err)
	}
	go c.Consume(ctx, "mails", func(ctx context.Context, p *client.Packet) error {
		return send(ctx, p.Payload) // nil acknowledges the packet, an error has it tried again
	}, client.Concurrency(8))
	<-signals
	err = c.Shutdown(ctx) // claims no more, and waits for the handlers

	fmt.Println("all handlers are done:", err)
	_ = c.Close()
	// Output:
	// to ann
	// all handlers are done: <nil>
}

// Two cells, or servers, divide the queues among them by name. All programs have the same list:
// with a longer one some queues are looked for elsewhere.
func Example_cells() {
	ctx := context.Background()
	first, second := client.New(&redis.Options{Addr: address()}), client.New(&redis.Options{Addr: address()})
	defer first.Close()
	defer second.Close()
	cells := []*client.Client{first, second}
	of := func(queue string) *client.Client { return cells[crc32.ChecksumIEEE([]byte(queue))%uint32(len(cells))] }

	for _, queue := range []string{"example.bills", "example.mails"} {
		if _, err := of(queue).Push(ctx, queue, []byte("17")); err != nil {
			log.Fatal(err)
		}
		packets, err := of(queue).Pop(ctx, queue)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(queue, of(queue) == second, string(packets[0].Payload))
	}
	// Output:
	// example.bills true 17
	// example.mails false 17
}

func ExampleClient_Push() {
	ctx := context.Background()
	c := client.New(&redis.Options{Addr: address()})
	defer c.Close()

	// The id of the order makes it safe to push again after an error.
	first, err := c.Push(ctx, "example.orders", []byte("order 17"),
		client.Priority(10), client.TTL(24*time.Hour), client.Unique("17"))
	if err != nil {
		log.Fatal(err)
	}
	again, err := c.Push(ctx, "example.orders", []byte("order 17"), client.Unique("17"))
	if err != nil {
		log.Fatal(err)
	}
	n, err := c.Len(ctx, "example.orders")
	fmt.Println(first == again, n, err)
	// Output: true 1 <nil>
}

func ExampleClient_Claim() {
	ctx := context.Background()
	c := client.New(&redis.Options{Addr: address()})
	defer c.Close()

	if _, err := c.PushBatch(ctx, "example.images", [][]byte{[]byte("1.png"), []byte("2.png")}); err != nil {
		log.Fatal(err)
	}
	packets, err := c.Claim(ctx, "example.images", client.Count(10), client.Lease(time.Minute), client.Block(time.Second))
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range packets {
		fmt.Println(string(p.Payload), p.State)
		if err := p.Ack(ctx); errors.Is(err, client.ErrStale) {
			fmt.Println("too late: another worker may do it again")
		}
	}
	// Output:
	// 1.png claimed
	// 2.png claimed
}

func ExampleClient_Claims() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := client.New(&redis.Options{Addr: address()})
	defer c.Close()

	if _, err := c.PushBatch(ctx, "example.steps", [][]byte{[]byte("one"), []byte("two")}); err != nil {
		log.Fatal(err)
	}
	for p, err := range c.Claims(ctx, "example.steps") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(p.Payload))
		if err := p.Ack(ctx); err != nil {
			log.Fatal(err)
		}
		if string(p.Payload) == "two" {
			break
		}
	}
	// Output:
	// one
	// two
}

// A program that works until it is told to end, and then lets its handlers finish.
func ExampleClient_Shutdown() {
	c := client.New(&redis.Options{Addr: address()})
	defer c.Close()

	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	go func() {
		<-signals
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := c.Shutdown(ctx); err != nil {
			log.Print(err)
		}
	}()
	if _, err := c.Push(context.Background(), "example.jobs", []byte("last")); err != nil {
		log.Fatal(err)
	}

	err := c.Consume(context.Background(), "example.jobs", func(ctx context.Context, p *client.Packet) error {
		signals <- syscall.SIGTERM // as if somebody had sent it
		fmt.Println("finished:", string(p.Payload))
		return nil
	})
	fmt.Println("the end:", err)
	// Output:
	// finished: last
	// the end: <nil>
}

// A queue with a bound refuses pushes, or has them wait for room.
func ExampleBlock() {
	ctx := context.Background()
	c := client.New(&redis.Options{Addr: address()})
	defer c.Close()

	if err := c.Set(ctx, "example.lines", "bound", "1"); err != nil {
		log.Fatal(err)
	}
	if _, err := c.Push(ctx, "example.lines", []byte("one")); err != nil {
		log.Fatal(err)
	}
	_, err := c.Push(ctx, "example.lines", []byte("two"))
	fmt.Println("full:", errors.Is(err, client.ErrFull))

	go c.Pop(ctx, "example.lines") // makes room
	_, err = c.Push(ctx, "example.lines", []byte("two"), client.Block(time.Minute))
	fmt.Println("pushed:", err == nil)
	// Output:
	// full: true
	// pushed: true
}

// What a handler's error says about the packet.
func ExampleClient_Consume() {
	ctx := context.Background()
	c := client.New(&redis.Options{Addr: address()})
	defer c.Close()

	var ids []string
	for _, to := range []string{"ann", "bob", "nobody"} {
		id, err := c.Push(ctx, "example.letters", []byte(to))
		if err != nil {
			log.Fatal(err)
		}
		ids = append(ids, id)
	}
	handled := make(chan struct{})
	go c.Consume(ctx, "example.letters", func(ctx context.Context, p *client.Packet) error {
		defer func() { handled <- struct{}{} }()
		switch string(p.Payload) {
		case "bob":
			return client.RetryIn(time.Hour, errors.New("on holiday"))
		case "nobody":
			return client.Dead(errors.New("no such address"))
		}
		return nil
	})
	for range ids {
		<-handled
	}
	if err := c.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	for _, id := range ids {
		p, err := c.Show(ctx, "example.letters", id)
		if errors.Is(err, client.ErrNoPacket) {
			fmt.Println("done")
			continue
		} else if err != nil {
			log.Fatal(err)
		}
		fmt.Println(p.State, "because:", p.Reason)
	}
	// Output:
	// done
	// delayed because: on holiday
	// dead because: no such address
}

// Rows go into a table a hundred at a time, or those that have come within a second of the first.
func ExampleClient_ConsumeBatch() {
	ctx := context.Background()
	c := client.New(&redis.Options{Addr: address()})
	defer c.Close()

	handled := make(chan struct{})
	go c.ConsumeBatch(ctx, "example.rows", 100, time.Second, func(ctx context.Context, all []*client.Packet) error {
		defer close(handled)
		for _, p := range all {
			if len(p.Payload) == 0 { // refused alone; the others are acknowledged
				if _, err := p.Nack(ctx, client.Dead(errors.New("an empty row"))); err != nil {
					return err
				}
			}
		}
		fmt.Println(len(all), "rows")
		return nil
	})
	if _, err := c.PushBatch(ctx, "example.rows", [][]byte{[]byte("one"), nil, []byte("three")}); err != nil {
		log.Fatal(err)
	}
	<-handled
	if err := c.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	for p, err := range c.List(ctx, "example.rows") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(p.State, "because:", p.Reason)
	}
	// Output:
	// 3 rows
	// dead because: an empty row
}

// How often a packet is tried, and how long it waits in between.
func ExampleClient_Set() {
	ctx := context.Background()
	c := client.New(&redis.Options{Addr: address()})
	defer c.Close()

	err := c.Set(ctx, "example.receipts", "max-attempts", 10, "backoff-min", 5*time.Second, "backoff-max", time.Hour)
	if err != nil {
		log.Fatal(err)
	}
	settings, err := c.Get(ctx, "example.receipts")
	fmt.Println(settings["max-attempts"], settings["backoff-min"], settings["backoff-max"], err)
	// Output: 10 5000 3600000 <nil>
}

// Workers of each class take what needs their class or less.
func ExampleWhere() {
	ctx := context.Background()
	c := client.New(&redis.Options{Addr: address()})
	defer c.Close()

	if err := c.Set(ctx, "example.tasks", "enum", "performance_class", "low", "standard", "high"); err != nil {
		log.Fatal(err)
	}
	for _, class := range []string{"high", "standard", "low"} {
		if _, err := c.Push(ctx, "example.tasks", []byte("a "+class+" task"), client.Tag("performance_class", class)); err != nil {
			log.Fatal(err)
		}
	}
	packets, err := c.Claim(ctx, "example.tasks", client.Where("performance_class", "<=", "standard"), client.Count(10))
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range packets {
		fmt.Println(string(p.Payload))
	}
	// Output:
	// a standard task
	// a low task
}

type Resize struct {
	Image string
	Width int
}

// Typed payloads.
func ExampleHandle() {
	ctx := context.Background()
	c := client.New(&redis.Options{Addr: address()})
	defer c.Close()

	if _, err := c.PushValue(ctx, "example.resize", client.JSON, Resize{"1.png", 640}); err != nil {
		log.Fatal(err)
	}
	done := make(chan struct{})
	go c.Consume(ctx, "example.resize", client.Handle(client.JSON, func(ctx context.Context, p *client.Packet, r Resize) error {
		defer close(done)
		fmt.Printf("%+v\n", r)
		return p.Progress(ctx, 100, "resized")
	}))
	<-done
	if err := c.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: {Image:1.png Width:640}
}

// A middleware that says how each packet ended.
func ExampleHandler_With() {
	report := func(next client.Handler) client.Handler {
		return func(ctx context.Context, p *client.Packet) error {
			err := next(ctx, p)
			fmt.Printf("packet %s: %v\n", p.ID, err)
			return err
		}
	}
	h := client.Handler(func(ctx context.Context, p *client.Packet) error {
		return errors.New("no luck")
	}).With(report)

	_ = h(context.Background(), &client.Packet{ID: "17"}) // as Consume does
	// Output: packet 17: no luck
}
