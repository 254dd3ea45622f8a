package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/console"
)

func TestRefusalsAndTheirRuleAreOnTheOverview(t *testing.T) {
	engine := newEngine(t, `flow: [{name: none, resource: "<script>alert(1)</script>", limit: 0}]`)
	address := serve(t, console.Options{Engine: engine})
	for range 5 {
		_, err := engine.Entry(t.Context(), "<script>alert(1)</script>")
		require.Error(t, err)
	}
	seen := watch(t, address+"/api/live?screen=overview", `"refusers":[{"kind":"flow","rule":"none"`)
	assert.NotContains(t, seen, "<script>", "JSON escapes it")
}

func TestEveryScreenOfOneProcessIsShown(t *testing.T) {
	address := serve(t, console.Options{Engine: newEngine(t, ordersRule)})
	for _, screen := range []string{"overview", "resource&name=orders", "rules", "quotas", "fleet", "instances", "lists", "history"} {
		seen := watch(t, address+"/api/live?screen="+screen, "\n\nevent: screen\ndata: {\"data\":{")
		assert.NotContains(t, seen, `"error":"`, screen)
	}
}

func TestCallIsExplained(t *testing.T) {
	engine := newEngine(t, `hotParam: [{name: per-user, resource: orders, param: user, limit: 0}]`)
	address := serve(t, console.Options{Engine: engine})
	query := url.Values{"resource": {"orders"}, "attr": {"user=alice"}}
	code, _, body := send(t, http.MethodGet, address+"/api/explain?"+query.Encode(), "", nil)
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, body, `"rule":"per-user"`)
	assert.Contains(t, body, `"refuses":1`)
}

func TestMistakesInRequestsAreAnswered(t *testing.T) {
	address := serve(t, console.Options{Engine: newEngine(t, ordersRule)})
	for path, want := range map[string]int{
		"live?screen=nothing": 400, "live?screen=resource": 400, "live?screen=overview&sort=x": 400, "live?screen=overview&match=~(": 400,
		"live?screen=resource&name=" + strings.Repeat("x", 9<<10): 414, "explain": 400, "explain?resource=a&attr=b": 400, "document?name=a": 400,
		"lookup?list=a&value=b": 400,
	} {
		code, _, body := send(t, http.MethodGet, address+"/api/"+path, "", nil)
		assert.Equal(t, want, code, "%.60s: %s", path, body)
		assert.Contains(t, body, `{"error":"`, path)
	}
}
