package httpsource_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/datasource/sourcetest"
)

// indexOf returns a handler of an index of documents, which are given as name or
// name=content.
func indexOf(documents ...string) http.HandlerFunc {
	var entries []string
	for _, d := range documents {
		name, content, hasContent := strings.Cut(d, "=")
		digest := ""
		if hasContent {
			digest = fmt.Sprintf(`, "sha256": "%X"`, sha256.Sum256([]byte(content)))
		}
		entries = append(entries, fmt.Sprintf(`{"name": %q%s}`, name, digest))
	}
	return serve(`{"documents": [` + strings.Join(entries, ", ") + `]}`)
}

func TestUnreadableIndexKeepsTheRules(t *testing.T) {
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		says    string
	}{
		"not found":        {status(404), "404 Not Found"},
		"gone":             {status(410), "410 Gone"},
		"empty":            {serve(""), "unexpected end of JSON input"},
		"half":             {serve(`{"documents": [{"name": "a.yaml"}`), "unexpected end of JSON input"},
		"no list":          {serve(`{}`), `it has no list "documents"`},
		"null":             {serve(`{"documents": null}`), `it has no list "documents"`},
		"another document": {serve(one), "it is not JSON like"},
		"list of names":    {serve(`["a.yaml"]`), "it is not JSON like"},
		"page": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte(`{"documents": []}`))
		}, "HTML page"},
		"too long":       {serve(strings.Repeat(" ", 8<<20) + `{"documents": []}`), "more than 8388608 bytes"},
		"too many":       {indexOf("a.yaml", "b.yaml", "c.yaml"), "3 documents are more than Options.MaxDocuments allows, which is 2"},
		"twice":          {indexOf("a.yaml", "a.yaml"), `document 1, "a.yaml": it is in the index twice`},
		"no name":        {serve(`{"documents": [{}]}`), `document 0, "": names are paths below`},
		"path above":     {indexOf("../a.yaml"), `"../a.yaml": names are paths below`},
		"absolute path":  {indexOf("/a.yaml"), "names are paths below"},
		"another host":   {indexOf("http://example.com/a.yaml"), "names are paths below"},
		"folder":         {indexOf("shop/"), "names are paths below"},
		"control":        {indexOf("a\n.yaml"), "names are paths below"},
		"bad digest":     {serve(`{"documents": [{"name": "a.yaml", "sha256": "xyz"}]}`), "its sha256 is not one"},
		"all at once":    {indexOf("/a", "/b"), "document 1, \"/b\""},
		"short digest":   {serve(`{"documents": [{"name": "a.yaml", "sha256": "00"}]}`), "its sha256 is not one"},
		"internal error": {status(500), "500 Internal Server Error"},
	} {
		t.Run(name, func(t *testing.T) {
			good := byPath(map[string]http.HandlerFunc{"/index.json": indexOf("a.yaml"), "/a.yaml": serve(one)})
			s := newServer(t, good)
			opts := quick()
			opts.MaxDocuments = 2
			r := sourcetest.Follow(t, openIndex(t, s.URL+"/index.json", opts))
			r.AwaitDocuments(t, map[string]string{"a.yaml": one})
			s.handle(test.handler)
			r.AwaitError(t, says(test.says))
			s.pass(t, 3)
			assert.Len(t, r.Changes(), 1)
			s.handle(good)
			r.AwaitDocuments(t, map[string]string{"a.yaml": one})
		})
	}
}

// A document that cannot be read is tried once more before it is reported, and others are
// delivered meanwhile.
func TestUnreadableDocumentOfAnIndexIsFaultyAlone(t *testing.T) {
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		says    string
	}{
		"not found":         {status(404), "/a.yaml: 404 Not Found"},
		"gone":              {status(410), "/a.yaml: 410 Gone"},
		"internal error":    {status(500), "500 Internal Server Error"},
		"connection closed": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "no answer"},
		"hangs":             {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "no answer within 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			handlers := map[string]http.HandlerFunc{"/index.json": indexOf("a.yaml", "b.yaml"), "/a.yaml": serve(one), "/b.yaml": serve(one)}
			s := newServer(t, byPath(handlers))
			opts := quick()
			opts.RequestTimeout = time.Second
			r := sourcetest.Follow(t, openIndex(t, s.URL+"/index.json", opts))
			r.AwaitDocuments(t, map[string]string{"a.yaml": one, "b.yaml": one})
			s.handle(byPath(map[string]http.HandlerFunc{"/index.json": indexOf("a.yaml", "b.yaml"), "/a.yaml": test.handler, "/b.yaml": serve(two)}))
			r.AwaitDocuments(t, map[string]string{"a.yaml": one, "b.yaml": two})
			require.ErrorContains(t, r.AwaitFault(t, "a.yaml"), test.says)
			changes := r.Changes()
			assert.Len(t, changes[1].Documents, 1, "the first failure is not reported")
			if name != "hangs" { // on a busy machine others might not answer within the timeout either
				assert.Empty(t, r.Errors())
			}
			s.handle(byPath(handlers))
			require.Eventually(t, func() bool { return r.Fault("a.yaml") == nil }, sourcetest.Patience, time.Millisecond)
			r.AwaitDocuments(t, map[string]string{"a.yaml": one, "b.yaml": one})
		})
	}
}

func TestFirstChangeHasEveryDocumentOrItsSecondError(t *testing.T) {
	s := newServer(t, byPath(map[string]http.HandlerFunc{"/index.json": indexOf("a.yaml", "b.yaml"), "/b.yaml": serve(one)}))
	p := followPolls(t, true, s.URL+"/index.json")
	require.Len(t, p.Errors(), 1)
	require.ErrorContains(t, p.Errors()[0], "/a.yaml: 404 Not Found")
	require.Empty(t, p.Changes())

	p.next(1)
	require.Len(t, p.Changes(), 1)
	assert.True(t, p.Changes()[0].Complete)
	assert.Len(t, p.Changes()[0].Documents, 2)
	require.ErrorContains(t, p.Fault("a.yaml"), "404 Not Found")
	assert.Equal(t, map[string]string{"b.yaml": one}, p.Documents())

	p.next(3)
	assert.Len(t, p.Changes(), 1, "it is reported once")
}

// With many documents a server that has gone would be asked for each of them.
func TestPollEndsWhenManyRequestsGetNoAnswer(t *testing.T) {
	var names []string
	want := map[string]string{}
	for i := range 100 {
		names = append(names, fmt.Sprintf("%d.yaml", i))
		want[names[i]] = one
	}
	index := indexOf(names...)
	var dead atomic.Bool
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/index.json":
			index(w, r)
		case dead.Load():
			panic(http.ErrAbortHandler)
		default:
			_, _ = w.Write([]byte(one))
		}
	})
	p := followPolls(t, true, s.URL+"/index.json")
	p.AwaitDocuments(t, want)
	dead.Store(true)
	before := s.requests.Load()
	p.next(1)
	require.Len(t, p.Errors(), 1)
	require.ErrorContains(t, p.Errors()[0], "no answer")
	assert.Less(t, s.requests.Load()-before, int64(60), "a request whose connection was used before is sent twice")
	assert.Equal(t, want, p.Documents())
	dead.Store(false)
	p.next(1)
	p.AwaitDocuments(t, want)
}

func TestIdlePollOfAnIndexWithDigestsIsOneRequest(t *testing.T) {
	s := newServer(t, byPath(map[string]http.HandlerFunc{
		"/index.json": indexOf("a.yaml="+one, "b.yaml="+two), "/a.yaml": serve(one), "/b.yaml": serve(two),
	}))
	p := followPolls(t, true, s.URL+"/index.json")
	p.AwaitDocuments(t, map[string]string{"a.yaml": one, "b.yaml": two})
	require.EqualValues(t, 3, s.requests.Load())
	p.next(5)
	assert.EqualValues(t, 3+5, s.requests.Load())
	assert.Len(t, p.Changes(), 1)
}

func TestDocumentWithoutTheDigestOfTheIndexIsNotDelivered(t *testing.T) {
	s := newServer(t, byPath(map[string]http.HandlerFunc{"/index.json": indexOf("a.yaml=" + one), "/a.yaml": serve(one)}))
	p := followPolls(t, true, s.URL+"/index.json")
	p.AwaitDocuments(t, map[string]string{"a.yaml": one})
	s.handle(byPath(map[string]http.HandlerFunc{"/index.json": indexOf("a.yaml=" + two), "/a.yaml": serve("flow: [half")}))
	p.next(1)
	require.Len(t, p.Changes(), 1, "it may be replaced soon")
	p.next(1)
	require.ErrorContains(t, p.Fault("a.yaml"), "does not have the SHA-256 that is in the index")
	assert.Equal(t, map[string]string{"a.yaml": one}, p.Documents())

	s.handle(byPath(map[string]http.HandlerFunc{"/index.json": indexOf("a.yaml=" + two), "/a.yaml": serve(two)}))
	p.next(1)
	p.AwaitDocuments(t, map[string]string{"a.yaml": two})
	assert.NoError(t, p.Fault("a.yaml"))
}

func TestNamesAreRelativeToWhereTheIndexIs(t *testing.T) {
	s := newServer(t, byPath(map[string]http.HandlerFunc{
		"/rules":                  redirect("/v2/rules/index.json?version=2"),
		"/v2/rules/index.json":    indexOf("a.yaml", "deep/b c.yaml"),
		"/v2/rules/a.yaml":        serve(one),
		"/v2/rules/deep/b c.yaml": serve(two),
	}))
	sourcetest.Follow(t, openIndex(t, s.URL+"/rules", quick())).
		AwaitDocuments(t, map[string]string{"a.yaml": one, "deep/b c.yaml": two})
}
