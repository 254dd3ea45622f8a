package consulsource_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// standIn stands in for Consul. It follows the documentation of its HTTP API: the
// key-value store, blocking queries and ACL tokens, as far as a source reads them, and
// what a real server of 1.21 was seen to answer. Tests against a real server are in
// real_test.go.
type standIn struct {
	t      *testing.T
	server *httptest.Server

	mu       sync.Mutex // guards the fields below
	pairs    map[string]storedPair
	index    int64         // of the last write
	changed  chan struct{} // closed when something above changes
	token    string        // that requests need; "" for none
	filter   func(key string) bool
	respond  func(http.ResponseWriter, *http.Request) bool // answers instead, if it returns true
	header   map[string]string
	requests []*http.Request
}

type storedPair struct {
	LockIndex   int
	Key         string
	Flags       int
	Value       []byte
	CreateIndex int64
	ModifyIndex int64
}

func newStandIn(t *testing.T) *standIn {
	t.Helper()
	s := &standIn{t: t, pairs: map[string]storedPair{}, index: 1, changed: make(chan struct{})}
	s.server = httptest.NewServer(s)
	t.Cleanup(s.server.Close)
	t.Cleanup(s.server.CloseClientConnections)
	return s
}

// update changes the stand-in and wakes the requests that wait.
func (s *standIn) update(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *standIn) put(key, value string) {
	s.update(func() {
		s.index++
		p := storedPair{Key: key, Value: []byte(value), CreateIndex: s.index, ModifyIndex: s.index}
		if before, known := s.pairs[key]; known {
			p.CreateIndex = before.CreateIndex
		}
		s.pairs[key] = p
	})
}

func (s *standIn) remove(key string) {
	s.update(func() {
		s.index++
		delete(s.pairs, key)
	})
}

// putHidden changes the value of a key that is there, and no index of it.
func (s *standIn) putHidden(key, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pairs[key]
	p.Value = []byte(value)
	s.pairs[key] = p
}

// replace begins a new history.
func (s *standIn) replace() {
	s.update(func() { s.pairs, s.index = map[string]storedPair{}, 1 })
}

func (s *standIn) asked() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r)
	respond, token := s.respond, s.token
	s.mu.Unlock()
	if respond != nil && respond(w, r) {
		return
	}
	prefix, ok := strings.CutPrefix(r.URL.Path, "/v1/kv/")
	query := r.URL.Query()
	switch {
	case !ok || !query.Has("recurse") || query.Has("stale") == query.Has("consistent"):
		http.Error(w, "unexpected request", http.StatusBadRequest)
	case token != "" && r.Header.Get("X-Consul-Token") != token:
		http.Error(w, "ACL not found", http.StatusForbidden)
	default:
		s.list(w, r, prefix)
	}
}

// list answers when something below the prefix is later than the index asked for.
func (s *standIn) list(w http.ResponseWriter, r *http.Request, prefix string) {
	after, _ := strconv.ParseInt(r.URL.Query().Get("index"), 10, 64)
	wait, err := time.ParseDuration(r.URL.Query().Get("wait"))
	if after > 0 && err != nil {
		http.Error(w, "Invalid wait time", http.StatusBadRequest)
		return
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	for {
		s.mu.Lock()
		index, changed := s.index, s.changed
		s.mu.Unlock()
		if after == 0 || index > after {
			break
		}
		select {
		case <-changed:
			continue
		case <-r.Context().Done():
			return
		case <-late.C:
		}
		break
	}
	s.write(w, prefix)
}

func (s *standIn) write(w http.ResponseWriter, prefix string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []storedPair
	for key, p := range s.pairs {
		if !strings.HasPrefix(key, prefix) {
			continue
		}
		if s.filter != nil && !s.filter(key) {
			w.Header().Set("X-Consul-Results-Filtered-By-ACLs", "true")
			continue
		}
		found = append(found, p)
	}
	slices.SortFunc(found, func(a, b storedPair) int { return strings.Compare(a.Key, b.Key) })
	w.Header().Set("X-Consul-Index", fmt.Sprint(s.index))
	w.Header().Set("X-Consul-KnownLeader", "true")
	w.Header().Set("X-Consul-LastContact", "0")
	for name, value := range s.header {
		w.Header().Set(name, value)
	}
	if len(found) == 0 {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(found)
}
