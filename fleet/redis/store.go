package redis

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/redis/rueidis"

	"github.com/penstock-go/penstock/fleet"
)

// Store keeps the limits of a fleet in Redis or Valkey. It is a [fleet.Store], and safe for
// concurrent use.
type Store struct {
	options    Options
	scripts    *scripts
	connection *connection
	slots      slots
}

var (
	_ fleet.Partitioned = (*Store)(nil)
	_ fleet.Notifier    = (*Store)(nil)
)

// Connect returns a store. It does not wait for the server, which need not be up: the store
// connects in the background, and again when a connection is lost. Errors tell of options
// that are wrong, all at once.
func Connect(options Options) (*Store, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	if options.DialTimeout == 0 {
		options.DialTimeout = time.Second
	}
	s := &Store{options: options}
	var err error
	if s.scripts, err = loadScripts(); err != nil {
		return nil, err
	}
	s.connection = newConnection(s.dial, options.DialTimeout)
	go s.slots.watch(s.connection)
	return s, nil
}

// Close implements [fleet.Backend]: it ends connections. Requests under way fail.
func (s *Store) Close() error {
	s.connection.close()
	return nil
}

// Exchange implements [fleet.Store]. It sends all requests in one pipeline, in a cluster in
// one for each node, and returns when ctx ends, with what has been answered by then.
func (s *Store) Exchange(ctx context.Context, requests []fleet.Request, replies []fleet.Reply) {
	pending := make([]int, 0, len(requests))
	for i := range requests {
		switch r := &requests[i]; {
		case r.Validate() != nil:
			replies[i] = fleet.Reply{Err: r.Validate()}
		case grantsNothing(r):
			replies[i] = fleet.Reply{Retry: fleet.Never, State: r.Seen}
		default:
			pending = append(pending, i)
		}
	}
	pending = s.make(ctx, requests, replies, pending, true)
	// Only what the server does not know how to run: all else was made, or nobody knows.
	s.make(ctx, requests, replies, pending, false)
}

// make makes the pending requests, by the hashes of their scripts or by their texts. It
// returns those whose script the server does not know.
func (s *Store) make(ctx context.Context, requests []fleet.Request, replies []fleet.Reply, pending []int, byHash bool) (unknown []int) {
	if len(pending) == 0 {
		return nil
	}
	results, err := s.connection.do(ctx, func(b rueidis.Builder) []rueidis.Completed {
		commands := make([]rueidis.Completed, len(pending))
		for i, at := range pending {
			r := &requests[at]
			commands[i] = s.scripts.operations[r.Operation].call(b, byHash, s.channeled(r, arguments(r)), s.keys(r)...)
		}
		return commands
	})
	for i, at := range pending {
		failed := err
		if failed == nil {
			replies[at], failed = answer(&requests[at], results[i])
		}
		if byHash && isNoScript(failed) {
			unknown = append(unknown, at)
		}
		if failed != nil {
			replies[at] = fleet.Reply{Err: s.explain(failed)}
		}
	}
	return unknown
}

// maxKey is the length of the key of a limit beyond which its hash stands for it.
const maxKey = 80

// key returns the key of a limit on the server, as an operation counts it.
func (s *Store) key(r *fleet.Request) string { return s.limitKey(r.Terms.Key) + suffix(r.Operation) }

// keys returns the keys that the script of a request is given, which are in one slot.
func (s *Store) keys(r *fleet.Request) []string {
	if r.Operation == fleet.ClaimValuePlaces {
		return []string{s.limitKey(r.Terms.Key) + ":v:" + r.Value.Value, s.key(r)}
	}
	return []string{s.key(r)}
}

// limitKey returns how the keys of a limit on the server begin. Its braces say what the slot in
// a cluster depends on.
func (s *Store) limitKey(name string) string {
	if len(name) > maxKey {
		sum := sha256.Sum256([]byte(name))
		name = "#" + hex.EncodeToString(sum[:16])
	}
	return "{ps:" + s.options.App + ":" + name + "}"
}
