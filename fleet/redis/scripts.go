package redis

import (
	"crypto/sha1" //nolint:gosec // the name under which a server keeps a script
	"embed"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/penstock-go/penstock/fleet"
)

//go:embed scripts/*.lua
var sources embed.FS

// script is a Lua script.
type script struct {
	text string
	sha  string // by which a server calls a script that it has run before
}

// scripts are what a store runs on the server.
type scripts struct {
	operations [fleet.ClaimValuePlaces + 1]script
	announce   script
}

func loadScripts() (*scripts, error) {
	s := &scripts{}
	for operation, name := range map[fleet.Operation]string{
		fleet.LeaseBucket:      "lease_bucket",
		fleet.LeaseWindow:      "lease_window",
		fleet.AskFixedWindow:   "ask_fixed_window",
		fleet.AskSlidingLog:    "ask_sliding_log",
		fleet.AskTokenBucket:   "ask_bucket",
		fleet.AskThrottle:      "ask_bucket",
		fleet.AskBalance:       "ask_balance",
		fleet.ClaimPlaces:      "claim_places",
		fleet.ClaimValuePlaces: "claim_value_places",
	} {
		if err := s.operations[operation].load(name); err != nil {
			return nil, err
		}
	}
	return s, s.announce.load("announce")
}

func (s *script) load(name string) error {
	text, err := sources.ReadFile("scripts/" + name + ".lua")
	if err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	sum := sha1.Sum(text) //nolint:gosec // as above
	s.text, s.sha = string(text), hex.EncodeToString(sum[:])
	return nil
}

// call makes the command that runs the script: by its hash, or by its text if the server does
// not know it.
func (s *script) call(b rueidis.Builder, known bool, args []string, keys ...string) rueidis.Completed {
	if known {
		return b.Arbitrary("EVALSHA", s.sha, whole(int64(len(keys)))).Keys(keys...).Args(args...).Build()
	}
	return b.Arbitrary("EVAL", s.text, whole(int64(len(keys)))).Keys(keys...).Args(args...).Build()
}

// arguments returns what the script of a request is given.
func arguments(r *fleet.Request) []string {
	t := &r.Terms
	window, keep := t.Window.Microseconds(), whole(r.Keep.Milliseconds())
	switch r.Operation {
	case fleet.LeaseBucket:
		seen, _ := strconv.ParseInt(r.Seen, 10, 64) // none, or one of another mode, tells nothing
		return []string{
			fraction(t.Limit), whole(window), fraction(t.Burst), whole(r.Want), whole(r.Back), whole(r.Owed),
			whole(r.Quantum), whole(r.Queue.Microseconds()), whole(seen), keep,
		}
	case fleet.LeaseWindow:
		buckets := int64(t.Buckets)
		return []string{
			fraction(math.Floor(t.Limit)), whole((window + buckets - 1) / buckets), whole(buckets), whole(r.Want),
			whole(r.Back), whole(r.BackTo), whole(r.Owed), whole(r.Quantum), whole(r.Ahead.Microseconds()), r.Seen, keep,
			counts(r.OwedBefore),
		}
	case fleet.AskFixedWindow:
		return []string{
			fraction(math.Floor(t.Limit)), whole(window), whole(r.Want), whole(r.BackTo), keep, whole(r.Owed), beginnings(r),
		}
	case fleet.AskSlidingLog:
		return []string{
			fraction(math.Floor(t.Limit)), whole(window), whole(r.Want), keep, whole(r.Owed), whole(r.Age.Microseconds()),
		}
	case fleet.AskThrottle:
		wait := whole(t.MaxWait.Microseconds())
		return []string{fraction(t.Limit), whole(window), fraction(max(1, t.Burst)), whole(r.Want), wait, keep, whole(r.Owed)}
	case fleet.AskBalance:
		return []string{fraction(math.Floor(t.Limit)), whole(r.Want), whole(r.Owed)}
	case fleet.ClaimPlaces:
		return claimArguments(r.Terms.Key, r.Places)
	case fleet.ClaimValuePlaces:
		return valueArguments(r.Value)
	default: // AskTokenBucket
		return []string{fraction(t.Limit), whole(window), fraction(t.Burst), whole(r.Want), "0", keep, whole(r.Owed)}
	}
}

// beginnings returns when windows of the calendar begin, from the one before the present one to the
// second after it; "" if all windows are as long.
func beginnings(r *fleet.Request) string {
	of := r.Terms.Calendar
	if of == nil {
		return ""
	}
	number := of.Number(r.At)
	all := make([]int64, 0, 4)
	for n := number - 1; n <= number+2; n++ {
		all = append(all, max(0, of.Start(n).UnixMicro()))
	}
	return counts(all)
}

func whole(n int64) string { return strconv.FormatInt(n, 10) }

// counts writes numbers with commas between them.
func counts(all []int64) string {
	texts := make([]string, len(all))
	for i, n := range all {
		texts[i] = whole(n)
	}
	return strings.Join(texts, ",")
}

// fraction writes a number without an exponent, which not every Lua reads.
func fraction(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// grantsNothing says whether a limit is so low that nothing can ever pass: the server need
// not be asked.
func grantsNothing(r *fleet.Request) bool {
	switch r.Operation {
	case fleet.LeaseWindow, fleet.AskFixedWindow, fleet.AskSlidingLog:
		return r.Terms.Limit < 1
	case fleet.ClaimPlaces, fleet.ClaimValuePlaces, fleet.AskBalance: // of which a limit of 0 is not the end
		return false
	default:
		return r.Terms.Limit == 0
	}
}

// suffix keeps apart what operations that count in different ways store of a limit. Those
// that count in the same way share it, so that a limit keeps its state when its mode changes.
func suffix(o fleet.Operation) string {
	switch o {
	case fleet.LeaseWindow:
		return ":w"
	case fleet.AskFixedWindow:
		return ":f"
	case fleet.AskSlidingLog:
		return ":l"
	case fleet.AskBalance:
		return ":b"
	case fleet.ClaimPlaces:
		return ":p"
	case fleet.ClaimValuePlaces:
		return ":i"
	default:
		return ""
	}
}

// answer reads what the script of a request has returned.
func answer(r *fleet.Request, result rueidis.RedisResult) (fleet.Reply, error) {
	values, err := result.ToArray()
	if err != nil {
		return fleet.Reply{}, err
	}
	f := fields{values: values}
	var reply fleet.Reply
	switch r.Operation {
	case fleet.LeaseBucket:
		reply = fleet.Reply{Granted: f.number(), Delay: f.micros(), Retry: f.retry(), State: whole(f.number())}
	case fleet.LeaseWindow:
		reply = fleet.Reply{Granted: f.number(), Delay: f.micros(), Valid: f.micros(), Retry: f.retry(), Bucket: f.number(), State: f.text()}
	case fleet.AskFixedWindow:
		reply = fleet.Reply{
			Granted: f.number(), Retry: f.retry(), Limit: f.number(), Remaining: f.number(), Reset: f.micros(), Bucket: f.number(),
		}
	case fleet.AskSlidingLog:
		reply = fleet.Reply{Granted: f.number(), Retry: f.retry(), Limit: f.number(), Remaining: f.number(), Reset: f.micros()}
	case fleet.AskBalance:
		reply = fleet.Reply{Granted: f.number(), Limit: f.number(), Remaining: f.number()}
	case fleet.ClaimPlaces:
		reply.Places = f.places()
	case fleet.ClaimValuePlaces:
		reply.Value = f.valuePlaces()
	default:
		reply = fleet.Reply{
			Granted: f.number(), Delay: f.micros(), Retry: f.retry(), Limit: f.number(), Remaining: f.number(), Reset: f.micros(),
		}
	}
	if f.err == nil && len(f.values) > 0 {
		f.err = errProtocol
	}
	if f.err != nil {
		return fleet.Reply{}, f.err
	}
	return reply, nil
}

// fields reads the values of an answer one after the other. After an error it returns zeros.
type fields struct {
	values []rueidis.RedisMessage
	err    error
}

func (f *fields) next() (m rueidis.RedisMessage) {
	if f.err == nil && len(f.values) == 0 {
		f.err = errProtocol
	}
	if f.err != nil {
		return m
	}
	m, f.values = f.values[0], f.values[1:]
	return m
}

func (f *fields) number() int64 {
	m := f.next()
	if f.err != nil {
		return 0
	}
	n, err := m.AsInt64()
	f.err = err
	return n
}

func (f *fields) text() string {
	m := f.next()
	if f.err != nil {
		return ""
	}
	text, err := m.ToString()
	f.err = err
	return text
}

func (f *fields) micros() time.Duration { return time.Duration(f.number()) * time.Microsecond }

func (f *fields) retry() time.Duration {
	if n := f.number(); n >= 0 {
		return time.Duration(n) * time.Microsecond
	}
	return fleet.Never
}
