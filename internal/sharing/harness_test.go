package sharing_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/internal/sharing"
)

// logText is what was logged. It may be read while others write.
type logText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logText) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// stepped is one member that is stepped by hand, whose batches are answered at once.
type stepped struct {
	t      *testing.T
	clock  *clock.Virtual
	store  *memory.Store
	member *sharing.Member
	log    logText
	isDown bool
	sent   []fleet.Request
	got    []fleet.Reply
}

// granted is how many tokens the store has granted.
func (s *stepped) granted() (sum int64) {
	for _, reply := range s.got {
		sum += reply.Granted
	}
	return sum
}

func newStepped(t *testing.T) *stepped {
	t.Helper()
	c := clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	s := &stepped{t: t, clock: c, store: memory.New(c)}
	s.member = sharing.NewMember(fleet.Config{Manual: true, Instance: "one"}, c, slog.New(slog.NewTextHandler(&s.log, nil)), 1)
	return s
}

func (s *stepped) now() clock.Instant { return s.clock.Now() }

// step sends what is due now.
func (s *stepped) step() {
	for s.member.Due() <= s.now() {
		for _, batch := range s.member.Step(s.now()) {
			s.sent = append(s.sent, batch.Requests...)
			if s.isDown {
				s.member.Fail(s.now(), batch, errRefused)
			} else if err := batch.Send(context.Background(), s.store); err != nil {
				s.member.Fail(s.now(), batch, err)
			} else {
				s.got = append(s.got, batch.Replies...)
				s.member.Deliver(s.now(), batch)
			}
		}
	}
}

// run lets time pass.
func (s *stepped) run(d time.Duration) {
	for end := s.now().Add(d); s.now() < end; {
		s.step()
		s.clock.Advance(min(ms, end.Sub(s.now())))
	}
	s.step()
}
