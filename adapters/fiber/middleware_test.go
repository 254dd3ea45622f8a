package penstockfiber_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/recover"
	"github.com/gofiber/fiber/v3/middleware/timeout"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	"github.com/penstock-go/penstock/adapters/clientip"
	penstockfiber "github.com/penstock-go/penstock/adapters/fiber"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// do has an App answer a request, and returns the status.
func do(t *testing.T, app *fiber.App, method, path string) int {
	t.Helper()
	rctx := requestOf(httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody))
	app.Handler()(rctx)
	rctx.ResetUserValues() // as a server does
	return rctx.Response.StatusCode()
}

func guardOf(engine *core.Engine, log *bytes.Buffer) fiber.Handler {
	return penstockfiber.Middleware(engine, penstockfiber.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
}

// service is an App with the middleware at some places: use, group, mount, route.
func service(guard fiber.Handler, places string, handler fiber.Handler, config ...fiber.Config) *fiber.App {
	at := func(place string) fiber.Handler {
		if strings.Contains(places, place) {
			return guard
		}
		return func(c fiber.Ctx) error { return c.Next() }
	}
	app := fiber.New(config...)
	app.Use(at("use"))
	app.Get("/orders/:id", at("route"), handler)
	app.Post("/orders", at("route"), handler)
	app.All("/any/:x", at("route"), handler)
	app.Get("/tree/*", at("route"), handler)
	app.Get("/number/:n<int>", at("route"), handler)
	app.Get("/from-:from/to-:to?", at("route"), handler)
	group := app.Group("/v1", at("group"))
	group.Get("/items/:id", at("route"), handler)
	files := fiber.New(config...)
	files.Use(at("mount"))
	files.Get("/:name", at("route"), handler)
	files.Get("/:name/versions/:version", at("route"), handler)
	group.Use("/files", files)
	return app
}

// Whatever route serves a request, its name is the path that fiber tells in the handler; and
// a request that no handler serves is unmatched.
func TestResourceIsTheRouteThatServesWhereverTheMiddlewareStands(t *testing.T) {
	guarded := 0
	for _, config := range []fiber.Config{{}, {CaseSensitive: true, StrictRouting: true}, {UnescapePath: true}} {
		for _, places := range []string{"use", "group", "mount", "route", "use group mount route"} {
			for _, method := range []string{"GET", "HEAD", "POST", "OPTIONS"} {
				for _, path := range []string{
					"/", "/orders/7", "/orders/a%2Fb", "/orders/7/", "/Orders/7", "/orders", "/orders/", "/any/7", "/tree", "/tree/", "/tree/a/b",
					"/number/7", "/number/x", "/from-a/to-b", "/from-a/to-", "/from-a", "/v1", "/v1/items/7", "/v1/items/a%2Fb", "/v1/nothing", "/v1/files", "/v1/files/a",
					"/v1/files/a/versions/3", "/v1/files/a/nothing", "/nothing", "//orders/7",
				} {
					engine, _ := adaptertest.NewEngine(t, rules.Set{})
					var log bytes.Buffer
					want := nethttp.Unmatched
					app := service(guardOf(engine, &log), places, func(c fiber.Ctx) error {
						want = strings.Replace(c.Method(), "HEAD", "GET", 1) + ":" + c.FullPath()
						return nil
					}, config)
					do(t, app, method, path)
					names := adaptertest.Called(engine)
					if len(names) > 0 || strings.Contains(places, "use") {
						assert.Equal(t, []string{want}, names, "%s: %s %s", places, method, path)
						guarded++
					}
					assert.Empty(t, log.String(), "%s: %s %s", places, method, path)
				}
			}
		}
	}
	assert.Greater(t, guarded, 500, "requests that came to a middleware")
}

func TestUnservedRequestsAreUnmatched(t *testing.T) {
	engine, _ := adaptertest.NewEngine(t, rules.Set{})
	app := service(guardOf(engine, new(bytes.Buffer)), "use", ok)
	assert.Equal(t, http.StatusMethodNotAllowed, do(t, app, http.MethodPost, "/orders/7"))
	assert.Equal(t, http.StatusNotFound, do(t, app, http.MethodGet, "/nothing"))
	assert.Equal(t, []string{nethttp.Unmatched}, adaptertest.Called(engine))
}

func TestRouteThatIsAddedLaterIsFound(t *testing.T) {
	engine, _ := adaptertest.NewEngine(t, rules.Set{})
	app := fiber.New()
	app.Use(guardOf(engine, new(bytes.Buffer)))
	app.Get("/orders/:id", ok)
	do(t, app, http.MethodGet, "/orders/7")
	app.Get("/items/:id", ok)
	do(t, app, http.MethodGet, "/items/7")
	assert.ElementsMatch(t, []string{orders, "GET:/items/:id"}, adaptertest.Called(engine))
}

func TestOneMiddlewareServesManyApps(t *testing.T) {
	engine, _ := adaptertest.NewEngine(t, rules.Set{})
	guard := guardOf(engine, new(bytes.Buffer))
	var names []string
	for i := range 120 {
		app := fiber.New()
		app.Use(guard)
		app.Get(fmt.Sprintf("/r%d/:id", i), ok)
		do(t, app, http.MethodGet, fmt.Sprintf("/r%d/7", i))
		names = append(names, fmt.Sprintf("GET:/r%d/:id", i))
	}
	assert.ElementsMatch(t, names, adaptertest.Called(engine))
}

// odd is a constraint that a second router does not have.
type odd struct{}

func (odd) Name() string { return "odd" }

func (odd) Execute(param string, _ ...string) bool { return len(param)%2 == 1 }

func TestMiddlewareWarnsOnceIfSomethingElseServesThanTheNamedRoute(t *testing.T) {
	for name, build := range map[string]func(guard fiber.Handler) *fiber.App{
		"custom constraint": func(guard fiber.Handler) *fiber.App {
			app := fiber.New()
			app.RegisterCustomConstraint(odd{})
			app.Use(guard)
			app.Get("/orders/:id<odd>", ok)
			app.Get("/orders/:id", ok)
			return app
		},
		"path that changes later": func(guard fiber.Handler) *fiber.App {
			app := fiber.New()
			app.Use(guard, func(c fiber.Ctx) error {
				c.Path("/new" + c.Path())
				return c.Next()
			})
			app.Get("/new/orders/:id", ok)
			return app
		},
		"handler in Use": func(guard fiber.Handler) *fiber.App {
			app := fiber.New()
			app.Use(guard)
			app.Use("/orders", ok)
			return app
		},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			engine, _ := adaptertest.NewEngine(t, rules.Set{})
			app := build(guardOf(engine, &log))
			for range 3 {
				assert.Equal(t, http.StatusOK, do(t, app, http.MethodGet, "/orders/77"))
			}
			assert.Equal(t, 1, strings.Count(log.String(), "level=WARN"), log.String())
			assert.Contains(t, log.String(), "put it at the route")
		})
	}
}

func TestCustomConstraintIsKnownAtTheRoute(t *testing.T) {
	engine, _ := adaptertest.NewEngine(t, rules.Set{})
	var log bytes.Buffer
	guard := guardOf(engine, &log)
	app := fiber.New()
	app.RegisterCustomConstraint(odd{})
	app.Get("/orders/:id<odd>", guard, ok)
	app.Get("/orders/:id", guard, ok)
	do(t, app, http.MethodGet, "/orders/77")
	do(t, app, http.MethodGet, "/orders/7")
	assert.ElementsMatch(t, []string{orders, "GET:/orders/:id<odd>"}, adaptertest.Called(engine))
	assert.Empty(t, log.String())
}

func TestParametersOfTheRouteAreAttributesWhereverTheMiddlewareStands(t *testing.T) {
	for _, test := range []struct{ key, path, same, other string }{
		{"param:id", "/orders/7", "/orders/7", "/orders/8"},
		{"param:id", "/orders/a%2Fb", "/orders/%61%2Fb", "/orders/a%2Fc"},
		{"param:id", "/v1/items/7", "/v1/items/7", "/v1/items/8"},
		{"param:version", "/v1/files/a/versions/3", "/v1/files/b/versions/3", "/v1/files/b/versions/4"},
		{"param:*", "/tree/a/b", "/tree/a/b", "/tree/a"},
		{"param:from", "/from-a/to-b", "/from-a/to-c", "/from-c/to-b"},
		{"path", "/orders/a%2Fb", "/orders/%61%2Fb", "/orders/a"},
		{"host", "/orders/7", "/orders/7", ""},
		{"query:q", "/orders/7?q=a", "/orders/8?p=1&q=%61", "/orders/7?q="},
	} {
		for _, places := range []string{"use", "group", "mount", "route"} {
			engine, _ := adaptertest.NewEngine(t, rules.Set{HotParam: []hotparam.Rule{
				{Match: "*", Param: rule.StringsOf(test.key), Limit: 1e-6, Burst: 1, Missing: rule.MissingBlock},
			}})
			app := service(guardOf(engine, new(bytes.Buffer)), places, ok)
			require.Equal(t, http.StatusOK, do(t, app, http.MethodGet, test.path), "%s %s", places, test.path)
			if len(adaptertest.Called(engine)) == 0 {
				continue // no middleware there
			}
			assert.Equal(t, http.StatusTooManyRequests, do(t, app, http.MethodGet, test.same), "%s %s", places, test.same)
			if test.other != "" {
				assert.Equal(t, http.StatusOK, do(t, app, http.MethodGet, test.other), "%s %s", places, test.other)
			}
		}
	}
}

// fasthttp reads the next request of a connection into the memory of the last one. Nothing
// that an engine has of a request changes with that.
func TestNothingThatTheEngineKeepsIsInTheMemoryOfRequests(t *testing.T) {
	for key, send := range map[string]func(value string) (path, header string){
		"param:id":          func(value string) (string, string) { return "/orders/" + value, "" },
		"path":              func(value string) (string, string) { return "/orders/" + value, "" },
		"query:q":           func(value string) (string, string) { return "/orders/7?q=" + value, "" },
		"header:X-Tenant":   func(value string) (string, string) { return "/orders/7", "X-Tenant: " + value },
		"cookie:sid":        func(value string) (string, string) { return "/orders/7", "Cookie: sid=" + value },
		"host":              func(value string) (string, string) { return "/orders/7", "Host: " + value },
		"ip":                func(value string) (string, string) { return "/orders/7", "X-Forwarded-For: 2001:db8::" + value[:4] },
		"origin":            func(value string) (string, string) { return "/orders/7", "X-App: " + value },
		"the user's option": func(value string) (string, string) { return "/orders/7", "X-User: " + value },
	} {
		for _, place := range []string{"use", "route"} {
			t.Run(key+" in "+place, func(t *testing.T) { requireCopies(t, key, place, send) })
		}
	}
}

// requireCopies sends requests with different values of an attribute over one connection, and
// checks that rules still have the value of each in the end.
func requireCopies(t *testing.T, key, place string, send func(value string) (path, header string)) {
	t.Helper()
	p := &adaptertest.Probe{Attribute: key}
	app := fiber.New()
	guard := penstockfiber.Middleware(p.NewEngine(t), penstockfiber.Options{
		Origin:  func(c fiber.Ctx) string { return c.Get("X-App") },
		Clients: clientip.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		Attributes: func(c fiber.Ctx) []core.Option {
			return []core.Option{core.String("the user's option", strings.Clone(c.Get("X-User")))}
		},
	})
	if place == "use" {
		app.Use(guard)
		app.Get("/orders/:id", ok)
	} else {
		app.Get("/orders/:id", guard, ok)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(serve(t, app), "http://"))
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	answers := bufio.NewReader(conn)
	var want []string
	for i := range 20 {
		value := strings.Repeat(fmt.Sprintf("%04d", 1000+i), 8)
		path, header := send(value)
		if !strings.HasPrefix(header, "Host:") {
			header += "\r\nHost: a"
		}
		_, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\n"+strings.TrimPrefix(header, "\r\n")+"\r\n\r\n")
		require.NoError(t, err)
		response, err := http.ReadResponse(answers, nil)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusOK, response.StatusCode)
		switch key {
		case "path":
			value = "/orders/" + value
		case "ip":
			value = "2001:db8::" + value[:4]
		}
		want = append(want, value)
	}
	for i, call := range p.Calls() {
		text, found := call.Attribute.Text()
		assert.True(t, found)
		assert.Equal(t, want[i], text, "the attribute of request %d", i)
	}
	assert.Len(t, p.Calls(), 20)
}

func TestNamesOfResourcesAndOriginsAreCopies(t *testing.T) {
	for what, suffix := range map[string]string{"known": "", "too long to be known": strings.Repeat("x", rule.MaxNameLength)} {
		t.Run(what, func(t *testing.T) {
			var blocks []*core.BlockError
			engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler), Observer: core.Observer{
				Refused: func(_ context.Context, err *core.BlockError) { blocks = append(blocks, err) },
			}})
			defer engine.Close()
			require.NoError(t, engine.Load(rules.Set{Flow: []flow.Rule{{Match: "*", Limit: 0}}}))
			app := fiber.New()
			app.Use(penstockfiber.Middleware(engine, penstockfiber.Options{
				Resource: func(c fiber.Ctx) string { return c.Get("X-Resource") },
				Origin:   func(c fiber.Ctx) string { return c.Get("X-Origin") },
			}))
			handler := app.Handler()
			rctx := requestOf(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody))
			var want []string
			for i := range 20 {
				name := fmt.Sprintf("name-%04d", i) + suffix
				rctx.Request.Header.Set("X-Resource", name)
				rctx.Request.Header.Set("X-Origin", name)
				handler(rctx)
				rctx.ResetUserValues()
				want = append(want, name)
			}
			for i, block := range blocks {
				assert.Equal(t, want[i], block.Resource)
			}
			assert.Len(t, blocks, len(want))
			if suffix == "" {
				assert.ElementsMatch(t, want, adaptertest.Called(engine))
			}
		})
	}
}

func TestOutcomeOfARequestForRules(t *testing.T) {
	canceled := func(c fiber.Ctx) error {
		ctx, cancel := context.WithCancel(c.Context())
		cancel()
		c.SetContext(ctx)
		return c.Next()
	}
	for _, test := range []struct {
		name    string
		handler fiber.Handler
		outer   fiber.Handler
		inner   fiber.Handler
		want    adaptertest.Outcome
		status  int
	}{
		{"404 as an error", func(fiber.Ctx) error { return fiber.ErrNotFound }, nil, nil, adaptertest.Succeeded, 404},
		{"error that wraps a status", func(fiber.Ctx) error {
			return fmt.Errorf("find: %w", fiber.NewError(http.StatusConflict, "taken"))
		}, nil, nil, adaptertest.Succeeded, 409},
		{"error after the response", func(c fiber.Ctx) error {
			_ = c.SendString("half")
			return errors.New("lost")
		}, nil, nil, adaptertest.Failed, 500},
		{"panic, recovered outside", func(fiber.Ctx) error { panic("boom") }, recover.New(), nil, adaptertest.Failed, 500},
		{"panic, recovered inside", func(fiber.Ctx) error { panic("boom") }, nil, recover.New(), adaptertest.Failed, 500},
		{"refusal that is answered otherwise", func(c fiber.Ctx) error {
			penstockfiber.MarkRefused(c)
			return c.SendStatus(http.StatusBadGateway)
		}, nil, nil, adaptertest.Ignored, 502},
		{"context that is cancelled inside", func(c fiber.Ctx) error { return c.Context().Err() }, nil, canceled, adaptertest.Ignored, 500},
		{"context that is cancelled inside, panic", func(fiber.Ctx) error { panic("boom") }, recover.New(), canceled, adaptertest.Ignored, 500},
	} {
		p := new(adaptertest.Probe)
		app := fiber.New()
		if test.outer != nil {
			app.Use(test.outer)
		}
		app.Use(penstockfiber.Middleware(p.NewEngine(t), penstockfiber.Options{}))
		if test.inner != nil {
			app.Use(test.inner)
		}
		app.Get("/orders/:id", test.handler)
		assert.Equal(t, test.status, do(t, app, http.MethodGet, "/orders/7"), test.name)
		assert.Equal(t, []adaptertest.Outcome{test.want}, p.Outcomes(), test.name)
	}
}

func TestDeadlineOfTheContextEndsTheWait(t *testing.T) {
	engine, virtual := adaptertest.NewEngine(t, rules.Set{Flow: []flow.Rule{
		{Resource: orders, Limit: 1, Algorithm: flow.Throttle, MaxWait: time.Hour},
	}})
	app := fiber.New()
	app.Use(func(c fiber.Ctx) error {
		ctx, cancel := context.WithDeadline(c.Context(), time.Unix(1, 0))
		defer cancel()
		if c.Query("late") != "" {
			c.SetContext(ctx)
		}
		return c.Next()
	}, penstockfiber.Middleware(engine, penstockfiber.Options{}))
	app.Get("/orders/:id", ok)
	assert.Equal(t, http.StatusOK, do(t, app, http.MethodGet, "/orders/7"))
	assert.Equal(t, http.StatusServiceUnavailable, do(t, app, http.MethodGet, "/orders/7?late=1"))
	virtual.Advance(time.Second)
	assert.Equal(t, http.StatusOK, do(t, app, http.MethodGet, "/orders/7"), "the place is free")
}

func TestRequestThatTimesOutEndsBeforeItsHandler(t *testing.T) {
	p := new(adaptertest.Probe)
	engine := p.NewEngine(t)
	release, done := make(chan struct{}), make(chan struct{})
	app := fiber.New()
	app.Use(penstockfiber.Middleware(engine, penstockfiber.Options{}))
	app.Get("/orders/:id", timeout.New(func(c fiber.Ctx) error {
		defer close(done)
		<-release
		penstockfiber.MarkRefused(c) // of a call that has ended
		return nil
	}, timeout.Config{Timeout: time.Millisecond}))
	response, err := http.Get(serve(t, app) + "/orders/7")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	http.DefaultClient.CloseIdleConnections()
	assert.Equal(t, http.StatusRequestTimeout, response.StatusCode)
	p.RequireOutcome(t, adaptertest.Succeeded) // 408 blames the client
	close(release)
	<-done
}

func TestStreamLastsForAllGuardsAroundIt(t *testing.T) {
	outer, inner := new(adaptertest.Probe), new(adaptertest.Probe)
	engines := []*core.Engine{outer.NewEngine(t), inner.NewEngine(t)}
	app := fiber.New()
	for _, engine := range engines {
		app.Use(penstockfiber.Middleware(engine, penstockfiber.Options{}))
	}
	next := make(chan struct{})
	app.Get("/orders/:id", func(c fiber.Ctx) error {
		return c.SendStreamWriter(func(w *bufio.Writer) {
			_, _ = w.WriteString("begun\n")
			_ = w.Flush()
			<-next
		})
	})
	response, err := http.Get(serve(t, app) + "/orders/7")
	require.NoError(t, err)
	defer http.DefaultClient.CloseIdleConnections()
	defer response.Body.Close()
	line, err := bufio.NewReader(response.Body).ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "begun\n", line)
	for _, engine := range engines {
		assert.EqualValues(t, 1, engine.Resource(orders).Snapshot().InFlight)
	}
	close(next)
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	outer.RequireOutcome(t, adaptertest.Succeeded)
	inner.RequireOutcome(t, adaptertest.Succeeded)
}

func TestShutdownWaitsForCallsThatWait(t *testing.T) {
	engine, virtual := adaptertest.NewEngine(t, rules.Set{Flow: []flow.Rule{
		{Resource: orders, Limit: 1, Algorithm: flow.Throttle, MaxWait: time.Hour},
	}})
	app := fiber.New()
	app.Use(penstockfiber.Middleware(engine, penstockfiber.Options{}))
	app.Get("/orders/:id", ok)
	url := serve(t, app)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func() int {
		response, err := client.Get(url + "/orders/7")
		if !assert.NoError(t, err) {
			return 0
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	assert.Equal(t, http.StatusOK, get())
	answered := make(chan int, 1)
	go func() { answered <- get() }()
	require.Eventually(t, func() bool { return virtual.Timers() == 1 }, eventTimeout, interval)
	shut := make(chan error, 1)
	go func() { shut <- app.Shutdown() }()
	require.Eventually(t, func() bool { // it takes no connections any more
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	}, eventTimeout, interval)
	assert.Empty(t, shut)
	virtual.Advance(time.Second)
	assert.Equal(t, http.StatusOK, <-answered)
	assert.NoError(t, <-shut)
}

func TestLimitIsExactUnderLoad(t *testing.T) {
	engine, _ := adaptertest.NewEngine(t, rules.Set{Flow: []flow.Rule{{Resource: orders, Limit: 100}}})
	app := fiber.New()
	app.Use(penstockfiber.Middleware(engine, penstockfiber.Options{}))
	app.Get("/orders/:id", ok)
	handler := app.Handler()
	var all sync.WaitGroup
	var mu sync.Mutex
	counted := map[int]int{}
	for range 8 {
		all.Go(func() {
			for range 50 {
				rctx := requestOf(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/orders/7", http.NoBody))
				handler(rctx)
				mu.Lock()
				counted[rctx.Response.StatusCode()]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	assert.Equal(t, map[int]int{200: 100, 429: 300}, counted)
	assert.Zero(t, engine.Resource(orders).Snapshot().InFlight)
}

func TestPassingAttributesThatNoRuleAsksForAreNotRead(t *testing.T) {
	reader := &adaptertest.AttributeReader{Key: "user"}
	app := service(penstockfiber.Middleware(reader.NewEngine(t), penstockfiber.Options{}), "use", func(fiber.Ctx) error { return nil })
	bare := service(nil, "", func(fiber.Ctx) error { return nil })
	serves := func(app *fiber.App) func() {
		handler := app.Handler()
		rctx := requestOf(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/files/a/versions/3", http.NoBody))
		return func() { handler(rctx); rctx.ResetUserValues() }
	}
	adaptertest.CheckAllocs(t, 0, serves(app), serves(bare), "a call of a route below others")
}

func TestAddressOfAPeerIsReadWithoutACopy(t *testing.T) {
	call := func(key string) func() {
		reader := &adaptertest.AttributeReader{Key: key}
		app := service(penstockfiber.Middleware(reader.NewEngine(t), penstockfiber.Options{}), "use", func(fiber.Ctx) error { return nil })
		handler := app.Handler()
		rctx := requestOf(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/files/a/versions/3", http.NoBody))
		return func() { handler(rctx); rctx.ResetUserValues() }
	}
	for _, key := range []string{"ip", "ipPrefix", "method"} {
		adaptertest.CheckAllocs(t, 0, call(key), call("user"), key)
	}
}
