package httpsource_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpsource "github.com/penstock-go/penstock/datasource/http"
	"github.com/penstock-go/penstock/datasource/lists"
	"github.com/penstock-go/penstock/datasource/sourcetest"
	"github.com/penstock-go/penstock/list"
)

func watchLists(t *testing.T, registry *list.Registry, url string) *lists.Watch {
	t.Helper()
	opts := quick()
	opts.RequestTimeout = 5 * time.Second
	opts.Logger = slog.New(slog.DiscardHandler)
	opts.Token = func() (string, error) { return token, nil }
	watch, err := httpsource.WatchLists(t.Context(), registry, url, opts)
	require.NoError(t, err)
	t.Cleanup(watch.Close)
	return watch
}

// guarded is a handler that demands the token.
func guarded(handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler(w, r)
	}
}

func awaitEntries(t *testing.T, registry *list.Registry, name string, want int) {
	t.Helper()
	require.Eventually(t, func() bool {
		l := registry.Get(name)
		return l == nil && want < 0 || l != nil && l.Len() == want
	}, sourcetest.Patience, time.Millisecond)
}

func TestListsOfAnIndexAreFollowed(t *testing.T) {
	const three = "192.0.2.0/24\n198.51.100.7\n2001:db8::/32\n"
	s := newServer(t, guarded(byPath(map[string]http.HandlerFunc{
		"/lists/index.json": indexOf("scrapers.txt="+three, "bots.txt=10.0.0.1\n"), "/lists/scrapers.txt": serve(three),
		"/lists/bots.txt": serve("10.0.0.1\n"),
	})))
	registry := list.NewRegistry()
	watch := watchLists(t, registry, s.URL+"/lists/index.json")
	ctx, cancel := context.WithTimeout(t.Context(), sourcetest.Patience)
	defer cancel()
	require.NoError(t, watch.Ready(ctx))
	awaitEntries(t, registry, "scrapers", 3)
	awaitEntries(t, registry, "bots", 1)

	s.handle(guarded(byPath(map[string]http.HandlerFunc{
		"/lists/index.json": indexOf("scrapers.txt=10.0.0.1\n"), "/lists/scrapers.txt": serve("10.0.0.1\n"),
	})))
	awaitEntries(t, registry, "scrapers", 1)
	awaitEntries(t, registry, "bots", -1)

	for _, broken := range []http.HandlerFunc{
		byPath(map[string]http.HandlerFunc{"/lists/index.json": indexOf("scrapers.txt=" + three), "/lists/scrapers.txt": serve("10.0.0.1")}),
		byPath(map[string]http.HandlerFunc{"/lists/index.json": indexOf("scrapers.txt=" + three), "/lists/scrapers.txt": status(500)}),
		byPath(map[string]http.HandlerFunc{"/lists/index.json": indexOf("scrapers.txt")}),
		status(404),
	} {
		s.handle(guarded(broken))
		s.pass(t, 20)
		assert.Equal(t, 1, registry.Get("scrapers").Len(), "the last good version stays")
	}
	require.ErrorContains(t, watch.Status().Err, "404 Not Found")
	s.handle(guarded(byPath(map[string]http.HandlerFunc{
		"/lists/index.json": indexOf("scrapers.txt=" + three), "/lists/scrapers.txt": serve(three),
	})))
	awaitEntries(t, registry, "scrapers", 3)
}

func TestListsNeedDigests(t *testing.T) {
	s := newServer(t, byPath(map[string]http.HandlerFunc{"/index.json": indexOf("scrapers.txt")}))
	watch := watchLists(t, list.NewRegistry(), s.URL+"/index.json")
	require.Eventually(t, func() bool { return watch.Status().Err != nil }, sourcetest.Patience, time.Millisecond)
	assert.ErrorContains(t, watch.Status().Err, `"scrapers.txt" has no sha256`)
}

func TestListThatStallsIsReadAgain(t *testing.T) {
	var all strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&all, "10.0.%d.%d\n", i/250, i%250)
	}
	long := all.String()
	stalls := true
	s := newServer(t, byPath(map[string]http.HandlerFunc{
		"/index.json": indexOf("scrapers.txt=" + long),
		"/scrapers.txt": func(w http.ResponseWriter, r *http.Request) {
			if stalls { // reads of one list never overlap
				stalls = false
				_, _ = w.Write([]byte(long[:50_000]))
				w.(http.Flusher).Flush()
				<-r.Context().Done()
				return
			}
			_, _ = w.Write([]byte(long))
		},
	}))
	opts := quick()
	opts.RequestTimeout = 300 * time.Millisecond
	opts.Logger = slog.New(slog.DiscardHandler)
	registry := list.NewRegistry()
	watch, err := httpsource.WatchLists(t.Context(), registry, s.URL+"/index.json", opts)
	require.NoError(t, err)
	t.Cleanup(watch.Close)
	awaitEntries(t, registry, "scrapers", 10_000)
}
