package recorder

import (
	"crypto/rand"
	"sync"
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
)

// Switch is the recorder while calls are recorded: while somebody wants that, or always. It is nil else.
type Switch struct {
	atomic.Pointer[Recorder]
	memory int
	values bool
	clock  clock.Clock

	mu    sync.Mutex
	users int
}

// Init says what recorders are made with, see [New].
func (s *Switch) Init(memory int, values bool, c clock.Clock) {
	s.memory, s.values, s.clock = memory, values, c
}

// Start switches the recorder on unless it is, and returns it. It is on until Stop was called as often.
func (s *Switch) Start() *Recorder {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users++; s.users == 1 {
		var secret [32]byte
		_, _ = rand.Read(secret[:]) // never fails
		s.Store(New(s.memory, s.values, secret, s.clock))
	}
	return s.Load()
}

// Stop switches the recorder off when nobody needs it any more.
func (s *Switch) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users == 0 {
		s.Store(nil)
	}
}
