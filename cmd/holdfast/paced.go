package main

import (
	"context"
	"io"
	"time"
)

// paced reads at most rate bytes a second, on average since it began. The sender then waits, too.
type paced struct {
	io.Reader
	ctx   context.Context
	rate  int64
	began time.Time
	read  int64
}

func (p *paced) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	p.read += int64(n)
	due := time.Duration(float64(p.read) / float64(p.rate) * float64(time.Second))
	select {
	case <-time.After(due - time.Since(p.began)):
	case <-p.ctx.Done():
		return n, p.ctx.Err()
	}
	return n, err
}
