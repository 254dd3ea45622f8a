package redis

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

const (
	// The pause between attempts to connect, which doubles.
	minPause = 20 * time.Millisecond
	maxPause = 500 * time.Millisecond

	// silence is how long a connection may owe answers before it is closed and made again.
	silence = time.Second

	// grace is how long after the end of a context its answers are still taken, so that one
	// slow node of a cluster does not cost the answers of the others.
	grace = 5 * time.Millisecond
)

// connection holds a client of the servers, and makes it again when it has to. A client makes
// lost connections again by itself, but only within the time that a request has, which may be
// too short: so a goroutine does it, which has longer.
type connection struct {
	dial    func(context.Context) (rueidis.Client, error)
	timeout time.Duration // how long a connection may take

	ctx      context.Context //nolint:containedctx // ends with close
	cancel   context.CancelFunc
	lost     chan struct{} // has a value when a request has failed
	readOnly atomic.Bool   // the server turned out to be a replica

	mu      sync.Mutex
	client  rueidis.Client // nil until the first attempt has succeeded
	err     error          // of the last attempt, while there is no client
	changed chan struct{}  // closed when client or err change
}

// newConnection begins to connect.
func newConnection(dial func(context.Context) (rueidis.Client, error), timeout time.Duration) *connection {
	ctx, cancel := context.WithCancel(context.Background())
	c := &connection{
		dial: dial, timeout: timeout, ctx: ctx, cancel: cancel,
		lost: make(chan struct{}, 1), changed: make(chan struct{}),
	}
	go c.run()
	return c
}

// close ends the goroutine and the client. It does not wait for attempts under way.
func (c *connection) close() {
	c.cancel()
	c.replace(nil, ErrClosed)
}

// replace has another client, or another error, take the place of what is there.
func (c *connection) replace(client rueidis.Client, err error) {
	c.mu.Lock()
	old := c.client
	if c.ctx.Err() != nil { // an attempt may have ended after close
		if client != nil {
			defer client.Close()
		}
		client, err = nil, ErrClosed
	}
	c.client, c.err = client, err
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
	if old != nil {
		old.Close()
	}
}

// state returns what there is at present, and a channel that is closed when that changes.
func (c *connection) state() (rueidis.Client, <-chan struct{}, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.client, c.changed, c.err
}

// wait returns the client. It waits for the first attempt to connect, and fails with its
// error.
func (c *connection) wait(ctx context.Context) (rueidis.Client, error) {
	for {
		client, changed, err := c.state()
		if client != nil || err != nil {
			return client, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// do sends commands in one pipeline and returns a result for each, or an error if there are
// none. It returns when ctx ends.
func (c *connection) do(ctx context.Context, build func(rueidis.Builder) []rueidis.Completed) ([]rueidis.RedisResult, error) {
	client, err := c.wait(ctx)
	if err != nil {
		return nil, err
	}
	// The client may wait for another request to connect, whatever the context says.
	commands := build(client.B())
	done := make(chan []rueidis.RedisResult, 1)
	go func() { done <- client.DoMulti(ctx, commands...) }()
	var results []rueidis.RedisResult
	select {
	case results = <-done:
	case <-ctx.Done():
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case results = <-done:
		case <-timer.C:
			c.look()
			return nil, ctx.Err()
		}
	}
	for i := range results {
		if results[i].NonRedisError() != nil {
			c.look()
		} else if isReadOnly(results[i].Error()) {
			c.readOnly.Store(true)
			c.look()
		}
	}
	return results, nil
}

// look has the goroutine look whether the servers answer.
func (c *connection) look() {
	select {
	case c.lost <- struct{}{}:
	default:
	}
}

func (c *connection) run() {
	c.connect()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-c.lost:
			c.restore()
		}
	}
}

// connect attempts to connect until that succeeds.
func (c *connection) connect() {
	for pause := minPause; c.ctx.Err() == nil; pause = min(2*pause, maxPause) {
		client, err := c.dial(c.ctx)
		if err == nil {
			c.replace(client, nil)
			return
		}
		c.replace(nil, err)
		c.sleep(pause)
	}
}

// restore returns when all servers answer. If none does, or if the server has become a
// replica, another client is made: a name may have another address by now.
func (c *connection) restore() {
	for pause := minPause; c.ctx.Err() == nil; pause = min(2*pause, maxPause) {
		client, _, err := c.state()
		if err != nil {
			return // closed
		}
		replica := c.readOnly.Swap(false)
		answered, all := c.ping(client)
		if all && !replica {
			return
		}
		if answered == 0 || replica {
			if another, err := c.dial(c.ctx); err == nil {
				c.replace(another, nil)
			}
		}
		if replica {
			pause = maxPause
		}
		c.sleep(pause)
	}
}

// ping returns how many servers answer, whatever they answer, and whether all do.
func (c *connection) ping(client rueidis.Client) (answered int64, all bool) {
	ctx, cancel := context.WithTimeout(c.ctx, c.timeout)
	defer cancel()
	nodes := client.Nodes()
	var count atomic.Int64
	var done sync.WaitGroup
	for _, node := range nodes {
		done.Go(func() {
			if node.Do(ctx, node.B().Ping().Build()).NonRedisError() == nil {
				count.Add(1)
			}
		})
	}
	done.Wait()
	return count.Load(), count.Load() == int64(len(nodes))
}

func (c *connection) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.ctx.Done():
	}
}
