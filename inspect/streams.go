package inspect

import (
	"encoding/json"
	"hash/maphash"
	"net/http"
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// streams is what the streams of a handler share: their number, and the pages that they tell, so that
// what many look at is read once a second.
type streams struct {
	mu      sync.Mutex // guards what follows
	count   int
	servers map[*http.Server]chan struct{} // closed when the server is shut down

	paging sync.Mutex // guards what follows, while a page is made, too
	seed   maphash.Seed
	pages  map[pageKey]*streamedPage
}

// pageKey is what streams look at that get the same page.
type pageKey struct {
	match string
	sort  ResourceSort
	limit int
}

// streamedPage is a page as it is in a second.
type streamedPage struct {
	second    int64
	at        time.Time
	total     int
	resources []streamedResource
}

type streamedResource struct {
	name    string
	encoded json.RawMessage
	hash    uint64
}

// begin counts a stream. The channel is closed when its server is shut down, which would wait for the
// stream otherwise. It returns false if there are too many streams.
func (s *streams) begin(r *http.Request) (ended <-chan struct{}, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	server, _ := r.Context().Value(http.ServerContextKey).(*http.Server)
	if server != nil && s.servers[server] == nil {
		closing := make(chan struct{})
		if s.servers == nil {
			s.servers = make(map[*http.Server]chan struct{})
		}
		s.servers[server] = closing
		server.RegisterOnShutdown(func() { close(closing) })
	}
	if s.count == maxStreams {
		return nil, false
	}
	s.count++
	return s.servers[server], true
}

func (s *streams) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count--
}

// page returns the present page. Those who ask in the same second get the same.
func (s *streams) page(h handler, f *resourceFilter) *streamedPage {
	now := h.engine.Clock().Now()
	second := int64(now) / int64(time.Second)
	s.paging.Lock()
	defer s.paging.Unlock()
	key := pageKey{f.Match, f.Sort, f.Limit}
	if page := s.pages[key]; page != nil && page.second == second {
		return page
	}
	if s.pages == nil {
		s.pages, s.seed = make(map[pageKey]*streamedPage), maphash.MakeSeed()
	}
	for other, page := range s.pages {
		if page.second < second-1 { // nobody looks at it any more
			delete(s.pages, other)
		}
	}
	page := s.newPage(h, f, now, second)
	s.pages[key] = page
	return page
}

func (s *streams) newPage(h handler, f *resourceFilter, now clock.Instant, second int64) *streamedPage {
	found, total := h.orderedResources(f)
	page := &streamedPage{second: second, at: timeOf(h.engine.Clock(), now), total: total}
	size := 0
	for i := range found {
		of := h.resourceOf(found[i].view, false)
		encoded, _ := json.Marshal(of) // never fails: numbers are finite
		page.resources = append(page.resources, streamedResource{of.Name, encoded, maphash.Bytes(s.seed, encoded)})
		if size += len(encoded); size > maxPageSize {
			break
		}
	}
	return page
}
