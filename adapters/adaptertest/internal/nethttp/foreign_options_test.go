package nethttp_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/adapters/priority"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestOptionThatFailsTakesNothing(t *testing.T) {
	t.Parallel()
	const document = `
flow: [{resource: r, limit: 1, window: 1h}]
isolation: [{resource: r, limit: 1}]
hotParam: [{name: a, resource: r, param: ip, limit: 1, window: 1h, algorithm: slidingWindow},
           {name: p, resource: r, param: "param:id", limit: 1, window: 1h, algorithm: slidingWindow},
           {name: c, resource: r, param: "param:id", concurrency: 1}]`
	for way, fail := range map[string]func(){"panic": func() { panic("failed") }, "Goexit": runtime.Goexit} {
		for _, name := range []string{"Resource", "Origin", "Tokens", "Attributes", "Param", "Priority", "PriorityTrust"} {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				set, err := rules.Parse("a.yaml", []byte(document))
				require.NoError(t, err)
				engine := core.New(core.Config{})
				defer engine.Close()
				require.NoError(t, engine.Load(set))
				fails := true
				at := func(here string) {
					if fails && here == name {
						fail()
					}
				}
				guarded := nethttp.Middleware(engine, nethttp.Options{
					Resource:       func(*http.Request) string { at("Resource"); return "r" },
					Origin:         func(*http.Request) string { at("Origin"); return "o" },
					Tokens:         func(*http.Request) int { at("Tokens"); return 1 },
					Attributes:     func(*http.Request) []core.Option { at("Attributes"); return nil },
					Param:          func(*http.Request, string) (string, bool) { at("Param"); return "7", true },
					Priority:       func(*http.Request) rule.Priority { at("Priority"); return rule.PriorityNormal },
					PriorityHeader: priority.Field,
					PriorityTrust:  func(*http.Request) (rule.Priority, bool) { at("PriorityTrust"); return rule.PriorityHigh, true },
					Clients:        clientip.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
				})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
				send := func() *httptest.ResponseRecorder {
					w, done := httptest.NewRecorder(), make(chan struct{})
					go func() {
						defer close(done)
						defer func() { _ = recover() }()
						r := httptest.NewRequest(http.MethodGet, "/", nil)
						if name != "Priority" {
							r.Header.Set(priority.Field, "high")
						}
						guarded.ServeHTTP(w, r)
					}()
					<-done
					return w
				}
				w := send()
				assert.Zero(t, engine.Resource("r").Snapshot().InFlight)
				assert.Zero(t, engine.Resource("r").Snapshot().Passed, w.Code)
				fails = false
				assert.Equal(t, http.StatusOK, send().Code)
				assert.Equal(t, http.StatusTooManyRequests, send().Code)
			})
		}
	}
}
