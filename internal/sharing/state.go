package sharing

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing/usage"
)

// Stores merge what they know with [fleet.Request.Seen] by the maximum. So a member brings what it
// has seen only when the store has probably lost its state: else tokens that other instances
// have handed back meanwhile would be taken for used.

// hasLostBucket says whether a bucket is full much earlier than it was told to be before:
// more than instances hand back. States are times in microseconds.
func hasLostBucket(before, after string, tolerance time.Duration) bool {
	then, err := strconv.ParseInt(before, 10, 64)
	now, err2 := strconv.ParseInt(after, 10, 64)
	return err == nil && err2 == nil && now < then-tolerance.Microseconds()
}

// hasLostWindow says whether less than half of what was counted in the buckets of a window
// before is counted now.
func hasLostWindow(before, after string) bool {
	then, ok := parseWindow(before)
	now, ok2 := parseWindow(after)
	if !ok || !ok2 || then.windowShape != now.windowShape {
		return false
	}
	var counted, left int64
	for i, count := range then.counts {
		if bucket := then.last - int64(i); bucket > now.last-now.buckets {
			counted += count
			left += now.count(bucket)
		}
	}
	return left < counted/2
}

// windowState is the counts of the buckets of a window, the last one first, as a store tells
// them: <length>x<buckets>:<last bucket>:<its count>,<the count before>,…
type windowState struct {
	windowShape
	last   int64
	counts []int64
}

// windowShape is how a store parts a window.
type windowShape struct {
	length  int64 // of a bucket, in microseconds
	buckets int64
}

// windowShape is the shape that the store has of the window of the budget.
func (b *Budget) windowShape() windowShape {
	return windowShape{b.bucketLength().Microseconds(), int64(b.terms.Buckets)}
}

func (s *windowState) count(bucket int64) int64 {
	if i := s.last - bucket; i >= 0 && i < int64(len(s.counts)) {
		return s.counts[i]
	}
	return 0
}

// used is how many tokens count in the window.
func (s *windowState) used() (sum int64) {
	for _, count := range s.counts[:min(int64(len(s.counts)), s.buckets)] {
		sum += count
	}
	return sum
}

// mean is how many tokens count in a bucket: of those before the last one, to which more
// tokens may come.
func (s *windowState) mean() float64 {
	sum := s.used() - s.counts[0]
	return float64(sum) / float64(s.buckets-1)
}

func parseWindow(state string) (s windowState, ok bool) {
	first, _, _ := strings.Cut(state, ";")
	parts := strings.Split(first, ":")
	if len(parts) != 3 {
		return s, false
	}
	length, buckets, _ := strings.Cut(parts[0], "x")
	var err, err2, err3 error
	s.length, err = strconv.ParseInt(length, 10, 64)
	s.buckets, err2 = strconv.ParseInt(buckets, 10, 64)
	s.last, err3 = strconv.ParseInt(parts[1], 10, 64)
	for text := range strings.SplitSeq(parts[2], ",") {
		count, _ := strconv.ParseInt(text, 10, 64)
		s.counts = append(s.counts, count)
	}
	return s, errors.Join(err, err2, err3) == nil
}

// present is how many tokens count in the window that ends with the present bucket, as far as the
// state tells which that is.
func (s *windowState) present() int64 {
	counts := s.counts
	if int64(len(counts)) > s.buckets { // the first is the next bucket
		counts = counts[1:]
	}
	return usage.Sum(counts)
}

// measurePortion takes a reply, when all that it grants is held.
func (b *Budget) measurePortion(now clock.Instant, reply *fleet.Reply) {
	if b.mode != fleet.ModeWindow {
		b.portion.Bucket(now)
		return
	}
	w, ok := parseWindow(reply.State)
	if !ok {
		return
	}
	granted := int64(0) // in the present bucket
	if reply.Delay == 0 {
		granted = reply.Granted
	}
	used := b.passes.Sum() + b.held.tokens() - b.owed - b.owedSent
	b.portion.Window(now, &b.passes, &b.terms, used, w.present(), granted)
}

// learn takes the state that a reply tells, and whether the store has lost what it knew.
func (b *Budget) learn(now clock.Instant, state string, wasTold bool) {
	if w, ok := parseWindow(state); ok && b.mode == fleet.ModeWindow {
		b.seeCrowd(now, &w)
		b.learnUse(now, &w)
		b.left = max(0, b.terms.Limit-float64(w.used()))
		b.isKnown, b.free, b.bucketTokens = true, b.left, b.left
		if w.buckets > 1 {
			mean := w.mean()
			b.bucketTokens = max(0, b.terms.Limit-float64(w.buckets-1)*mean)
			b.free = max(0, b.bucketTokens-mean)
		}
	}
	lost := !wasTold && b.seen != "" && state != ""
	if lost && b.mode == fleet.ModeWindow {
		lost = hasLostWindow(b.seen, state)
	} else if lost {
		lost = hasLostBucket(b.seen, state, usage.Seconds(b.terms.Burst/b.fleetRate()/2))
	}
	if lost {
		b.tells = true
		return
	}
	if wasTold {
		b.tells = false
	}
	if state != "" {
		b.seen = state
	}
}
