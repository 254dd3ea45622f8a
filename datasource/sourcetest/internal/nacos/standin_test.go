package nacossource_test

import (
	"crypto/md5"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// standIn stands in for Nacos, for which no server could be had. It follows the
// documentation of the open API of Nacos 2, and what its clients send: searches, reads,
// listeners that compare MD5 sums, and logins with tokens that expire.
type standIn struct {
	t      *testing.T
	server *httptest.Server

	mu        sync.Mutex // guards the fields below
	configs   map[string]string
	changed   chan struct{} // closed when something above changes
	password  string        // "" for no authentication
	token     string        // accepted at present
	ttl       int           // of tokens, in seconds
	logins    int
	encrypted map[string]bool
	noContent bool                                          // searches return no contents
	respond   func(http.ResponseWriter, *http.Request) bool // answers instead, if it returns true
	requests  []*http.Request
}

const (
	group     = "penstock-shop"
	namespace = "team-a"
	user      = "shop"
)

func newStandIn(t *testing.T) *standIn {
	t.Helper()
	s := &standIn{t: t, configs: map[string]string{}, encrypted: map[string]bool{}, changed: make(chan struct{}), ttl: 18_000}
	s.server = httptest.NewServer(s)
	t.Cleanup(s.server.Close)
	t.Cleanup(s.server.CloseClientConnections)
	return s
}

// update changes the stand-in and wakes the requests that listen.
func (s *standIn) update(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *standIn) put(name, content string) { s.update(func() { s.configs[name] = content }) }
func (s *standIn) remove(name string)       { s.update(func() { delete(s.configs, name) }) }

// putHidden changes a document without a word to the requests that listen.
func (s *standIn) putHidden(name, content string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.configs[name] = content
}

// asked returns the requests with a path, so far.
func (s *standIn) asked(path string) (found []*http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if r.URL.Path == path {
			found = append(found, r)
		}
	}
	return found
}

func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	s.mu.Lock()
	s.requests = append(s.requests, r)
	respond, refused := s.respond, s.password != "" && r.URL.Query().Get("accessToken") != s.token
	s.mu.Unlock()
	switch {
	case respond != nil && respond(w, r):
	case r.URL.Path == "/nacos/v1/auth/users/login":
		s.login(w, r)
	case refused:
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"status":403,"error":"Forbidden","message":"token expired!","path":%q}`, r.URL.Path)
	case r.Method == http.MethodPost && r.URL.Path == "/nacos/v1/cs/configs/listener":
		s.listen(w, r)
	case r.Method != http.MethodGet || r.URL.Path != "/nacos/v1/cs/configs" ||
		r.Form.Get("group") != group || r.Form.Get("tenant") != namespace:
		http.Error(w, "unexpected request", http.StatusBadRequest)
	case r.Form.Get("search") == "accurate":
		s.search(w, r)
	default:
		s.get(w, r)
	}
}

func (s *standIn) login(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.PostForm.Get("username") != user || r.PostForm.Get("password") != s.password {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, "unknown user!")
		return
	}
	s.logins++
	s.token = fmt.Sprintf("token-of-login-%d", s.logins)
	fmt.Fprintf(w, `{"accessToken":%q,"tokenTtl":%d,"globalAdmin":false,"username":%q}`, s.token, s.ttl, user)
}

func (s *standIn) search(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	number, _ := strconv.Atoi(r.Form.Get("pageNo"))
	size, _ := strconv.Atoi(r.Form.Get("pageSize"))
	if number < 1 || size < 1 {
		http.Error(w, "caused: Required request parameter", http.StatusBadRequest)
		return
	}
	names := slices.Sorted(maps.Keys(s.configs))
	items := []map[string]any{}
	for i := (number - 1) * size; i < min(number*size, len(names)); i++ {
		name := names[i]
		item := map[string]any{"id": "1", "dataId": name, "group": group, "tenant": namespace, "md5": nil, "type": "yaml"}
		if s.encrypted[name] {
			item["encryptedDataKey"] = "key"
		}
		if !s.noContent {
			item["content"] = s.configs[name]
		}
		items = append(items, item)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"totalCount": len(names), "pageNumber": number, "pagesAvailable": (len(names) + size - 1) / size, "pageItems": items,
	})
}

func (s *standIn) get(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	content, ok := s.configs[r.Form.Get("dataId")]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, "config data not exist")
		return
	}
	if s.encrypted[r.Form.Get("dataId")] {
		w.Header().Set("Encrypted-Data-Key", "key")
	}
	fmt.Fprint(w, content)
}

// listen answers when a document differs from its MD5 sum, or at the end of the time.
func (s *standIn) listen(w http.ResponseWriter, r *http.Request) {
	wait, err := strconv.Atoi(r.Header.Get("Long-Pulling-Timeout"))
	listened := r.PostForm.Get("Listening-Configs")
	if err != nil || !strings.HasSuffix(listened, "\x01") {
		http.Error(w, "invalid probeModify", http.StatusBadRequest)
		return
	}
	late := time.NewTimer(max(10*time.Second, time.Duration(wait)*time.Millisecond-500*time.Millisecond))
	defer late.Stop()
	for {
		s.mu.Lock()
		differs, changed := s.differs(listened), s.changed
		s.mu.Unlock()
		if differs != "" {
			fmt.Fprint(w, url.QueryEscape(differs))
			return
		}
		select {
		case <-changed:
		case <-late.C:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// differs returns the documents whose contents have another MD5 sum. The caller holds mu.
func (s *standIn) differs(listened string) (all string) {
	for record := range strings.SplitSeq(strings.TrimSuffix(listened, "\x01"), "\x01") {
		fields := strings.Split(record, "\x02")
		if len(fields) != 4 || fields[1] != group || fields[3] != namespace {
			return "invalid"
		}
		content, ok := s.configs[fields[0]]
		sum := fmt.Sprintf("%x", md5.Sum([]byte(content)))
		if !ok || sum != fields[2] {
			all += fields[0] + "\x02" + group + "\x02" + namespace + "\x01"
		}
	}
	return all
}
