package sourcetest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/sourcetest"
	"github.com/penstock-go/penstock/rules"
)

const (
	password      = "pass-4711"
	wrongPassword = "wrong-0815"
)

// store is a store in memory.
type store struct {
	mu        sync.Mutex // guards the fields below
	documents map[string]core.Document
	revision  int64
	stopped   bool
	cutAfter  int // documents of the next read, if cut is set
	cut       bool
	attempts  int
	changed   chan struct{} // closed and replaced with every change
}

func newStore() *store {
	return &store{documents: map[string]core.Document{}, changed: make(chan struct{})}
}

func (s *store) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *store) Put(name, content string) {
	s.change(func() {
		s.revision++
		s.documents[name] = core.Document{Name: name, Revision: s.revision, Data: []byte(content)}
	})
}

func (s *store) Delete(name string) {
	s.change(func() {
		s.revision++
		delete(s.documents, name)
	})
}

func (s *store) PutHidden(name, content string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.documents[name]
	d.Data = []byte(content)
	s.documents[name] = d
}

func (s *store) Stop()  { s.change(func() { s.stopped = true }) }
func (s *store) Start() { s.change(func() { s.stopped = false }) }

func (s *store) Replace() {
	s.change(func() {
		s.revision = 0
		clear(s.documents)
	})
}

func (s *store) CutAfter(bytes int) {
	s.change(func() { s.cut, s.cutAfter = true, bytes/100 })
}

func (s *store) Attempts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attempts
}

// read returns all documents, or a part of them and an error. The channel is closed with
// the next change.
func (s *store) read(credentials string) (all []core.Document, revision int64, changed <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts++
	switch {
	case s.stopped:
		return nil, 0, s.changed, errors.New("connection refused")
	case credentials != password:
		return nil, 0, s.changed, errors.New("wrong password")
	}
	for _, d := range s.documents {
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b core.Document) int { return cmp.Compare(a.Name, b.Name) })
	if s.cut {
		s.cut = false
		return all[:min(s.cutAfter, len(all))], s.revision, s.changed, errors.New("connection reset")
	}
	return all, s.revision, s.changed, nil
}

// source is a source of the store that keeps all promises, unless it has a fault.
type source struct {
	store    *store
	password string
	fault    fault
	log      *slog.Logger

	// What only faulty ones have.
	remembered []core.Document
	newest     int64
	first      map[string]core.Document
	events     int
}

// fault is a mistake that a source may make.
type fault string

const (
	missesWhatChangedWhileAway fault = "misses what changed while away"
	ignoresLowerRevisions      fault = "ignores lower revisions"
	remembersTheRunBefore      fault = "remembers the run before"
	clearsAllWhenUnreachable   fault = "clears all when unreachable"
	emptyWhenUnreachable       fault = "is empty when unreachable at first"
	leaksAGoroutine            fault = "leaks a goroutine"
	ignoresItsContext          fault = "ignores its context while unreachable"
	logsThePassword            fault = "logs the password"
	showsThePasswordInErrors   fault = "shows the password in errors"
	busyLoops                  fault = "tries again without a pause"
	deliversPartialReads       fault = "delivers partial reads"
	firstIsNotComplete         fault = "does not say that the first change is complete"
	losesEveryThirdChange      fault = "loses every third change"
	goesBack                   fault = "goes back to an earlier version"
	hidesOutages               fault = "does not report that it cannot read"
	escapesNames               fault = "escapes names"
	takesEmptyForRemoved       fault = "takes an empty document for a removed one"
	failsAllForOne             fault = "delivers nothing while one document is too long"
	appliesConcurrently        fault = "calls the sink concurrently"
	endsOnErrors               fault = "gives up after an error"
	believesNotifications      fault = "believes that nothing has changed until it is told of a change"
)

func (s *source) Name() string { return "memory" }

func (s *source) Run(ctx context.Context, sink core.Sink) error {
	if s.fault == leaksAGoroutine {
		go func() { <-make(chan struct{}) }()
	}
	if s.fault == logsThePassword {
		s.log.Info("connecting", slog.String("password", s.password))
	}
	if s.fault == remembersTheRunBefore && s.remembered != nil {
		sink.Apply(core.Change{Complete: true, Documents: s.remembered})
	}
	delivered := map[string]core.Document{} // by name
	for first := true; ctx.Err() == nil; {
		all, revision, changed, err := s.store.read(s.password)
		if err != nil && s.fault == deliversPartialReads && len(all) > 0 {
			err = nil
		}
		if err == nil {
			err = s.tooLong(all)
		}
		if err != nil {
			if s.fault == endsOnErrors {
				return err
			}
			s.lost(ctx, sink, err, first, delivered)
			continue
		}
		s.deliver(sink, all, revision, first, delivered)
		first = false
		s.awaitChange(ctx, changed)
	}
	return ctx.Err()
}

// awaitChange returns when the store may have changed, or it is time to look anyway.
func (s *source) awaitChange(ctx context.Context, changed <-chan struct{}) {
	timer := time.NewTimer(20 * time.Millisecond)
	defer timer.Stop()
	elapsed := timer.C
	if s.fault == believesNotifications {
		elapsed = nil
	}
	select {
	case <-ctx.Done():
	case <-changed:
	case <-elapsed:
	}
}

// lost reports an error and pauses.
func (s *source) lost(ctx context.Context, sink core.Sink, err error, first bool, delivered map[string]core.Document) {
	switch {
	case s.fault == clearsAllWhenUnreachable && !first, s.fault == emptyWhenUnreachable && first:
		sink.Apply(core.Change{Complete: true})
		clear(delivered)
	case s.fault == showsThePasswordInErrors:
		err = fmt.Errorf("memory://user:%s@host: %w", s.password, err)
	}
	if s.fault != hidesOutages {
		sink.Disconnected(err)
	}
	if s.fault == missesWhatChangedWhileAway && !first {
		s.newest = 0
		for _, changed, err := s.skip(); err != nil; _, changed, err = s.skip() {
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
		}
	}
	s.pause(ctx)
}

// skip reads and takes all that is there for known.
func (s *source) skip() (all []core.Document, changed <-chan struct{}, err error) {
	all, revision, changed, err := s.store.read(s.password)
	if err == nil {
		s.newest = revision
	}
	return all, changed, err
}

func (s *source) pause(ctx context.Context) {
	switch s.fault {
	case busyLoops:
		return
	case ignoresItsContext:
		ctx = context.Background()
		<-ctx.Done()
	default:
		timer := time.NewTimer(8 * time.Millisecond)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
	}
}

// tooLong marks documents that are too long.
func (s *source) tooLong(all []core.Document) error {
	for i, d := range all {
		if len(d.Data) > rules.MaxDocumentSize {
			all[i].Data, all[i].Err = nil, fmt.Errorf("%d bytes are more than %d", len(d.Data), rules.MaxDocumentSize)
			if s.fault == failsAllForOne {
				return all[i].Err
			}
		}
	}
	return nil
}

// deliver delivers what has changed.
func (s *source) deliver(sink core.Sink, all []core.Document, revision int64, first bool, delivered map[string]core.Document) {
	change := core.Change{Complete: first && s.fault != firstIsNotComplete, Revision: revision}
	present := map[string]bool{}
	for _, d := range all {
		present[d.Name] = true
		before, known := delivered[d.Name]
		if known && before.Revision == d.Revision && string(before.Data) == string(d.Data) {
			continue
		}
		delivered[d.Name] = d
		if s.skips(d, first) {
			continue
		}
		if s.fault == escapesNames {
			d.Name = url.PathEscape(d.Name)
		}
		if s.fault == takesEmptyForRemoved && len(d.Data) == 0 && d.Err == nil {
			change.Removed = append(change.Removed, d.Name)
			continue
		}
		change.Documents = append(change.Documents, d)
	}
	for name := range delivered {
		if !present[name] {
			delete(delivered, name)
			change.Removed = append(change.Removed, name)
		}
	}
	if s.fault != "" {
		s.newest, s.remembered = max(s.newest, revision), all
	}
	s.apply(sink, change, first)
}

// skips says whether a faulty source leaves out a version.
func (s *source) skips(d core.Document, first bool) bool {
	switch {
	case first:
		return false
	case s.fault == missesWhatChangedWhileAway, s.fault == ignoresLowerRevisions:
		return d.Revision <= s.newest
	case s.fault == losesEveryThirdChange:
		s.events++
		return s.events%3 == 0
	}
	return false
}

func (s *source) apply(sink core.Sink, change core.Change, first bool) {
	if !first && len(change.Documents)+len(change.Removed) == 0 {
		sink.Apply(core.Change{Revision: change.Revision}) // connected again
		return
	}
	if s.fault == goesBack && !first {
		s.goBack(sink, change)
	}
	if s.fault == appliesConcurrently {
		var both sync.WaitGroup
		for range 50 {
			both.Go(func() { sink.Apply(change) })
		}
		both.Wait()
		return
	}
	sink.Apply(change)
}

// goBack delivers a version and then the first one of all again, before the version is
// delivered once more.
func (s *source) goBack(sink core.Sink, change core.Change) {
	if s.first == nil {
		s.first = map[string]core.Document{}
	}
	sink.Apply(change)
	var old []core.Document
	for _, d := range change.Documents {
		if _, ok := s.first[d.Name]; !ok {
			s.first[d.Name] = d
		}
		old = append(old, s.first[d.Name])
	}
	sink.Apply(core.Change{Documents: old})
}

var _ interface {
	sourcetest.Store
	sourcetest.Replacer
	sourcetest.Cutter
	sourcetest.Counter
	sourcetest.Hider
} = (*store)(nil)
