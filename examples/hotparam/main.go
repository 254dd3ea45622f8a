// Hotparam shows limits for each user and for each client address of an HTTP service
// behind a proxy. Ten honest users share it with an attacker, who has another account
// and forges another address for every call. The requests are real; the clock that the
// limits go by is virtual, so ten seconds pass in no time.
//
//	go run ./examples/hotparam
package main

import (
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"time"

	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func limits() rules.Set {
	return rules.Set{HotParam: []hotparam.Rule{
		{Name: "per-user", Resource: "POST:/orders", Param: rule.StringsOf("user"), Limit: 10},
		{
			Name: "per-address", Resource: "POST:/orders", Param: rule.StringsOf("ip"), Limit: 20,
			Penalty: hotparam.Penalty{After: 200, Within: 10 * time.Second, For: time.Minute},
		},
	}}
}

// service returns an HTTP service that expects to be behind a proxy on this machine.
func service(engine *core.Engine) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	return nethttp.Middleware(engine, nethttp.Options{
		Clients: clientip.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		Attributes: func(r *http.Request) []core.Option {
			user, _, _ := r.BasicAuth() // a real service checks the password
			return []core.Option{core.String("user", user)}
		},
	})(mux)
}

// caller counts the calls of the honest users, or of the attacker.
type caller struct{ passed, refused int }

// order sends a request as the proxy passes it on: what the client wrote into
// X-Forwarded-For, and behind that the address that the client has.
func (c *caller) order(url, user, forged, address string) error {
	request, err := http.NewRequest(http.MethodPost, url+"/orders", http.NoBody) //nolint:noctx // of the server below
	if err != nil {
		return err
	}
	request.SetBasicAuth(user, "secret")
	request.Header.Set("X-Forwarded-For", forged+address)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	switch response.StatusCode {
	case http.StatusCreated:
		c.passed++
	case http.StatusTooManyRequests:
		c.refused++
	default:
		return fmt.Errorf("answered %s", response.Status)
	}
	return nil
}

func run(out io.Writer) error {
	now := clock.NewVirtual(time.Unix(0, 0))
	engine := core.New(core.Config{Clock: now, Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	if err := engine.Load(limits()); err != nil {
		return err
	}
	server := httptest.NewServer(service(engine))
	defer server.Close()
	fmt.Fprintln(out, "        honest users     attacker")
	fmt.Fprintln(out, "second  passed refused   passed refused")
	for second := range 10 {
		honest, attacker, err := offer(now, server.URL, second)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%6d  %6d %7d   %6d %7d\n", second, honest.passed, honest.refused, attacker.passed, attacker.refused)
	}
	printHottest(out, engine)
	return nil
}

// offer makes the calls of a second: 5 of each honest user, 100 of the attacker.
func offer(now *clock.Virtual, url string, second int) (honest, attacker caller, err error) {
	for i := range 100 {
		n := 100*second + i
		if err := attacker.order(url, fmt.Sprintf("stolen-%d", n), fmt.Sprintf("192.0.2.%d, ", n%256), "203.0.113.66"); err != nil {
			return honest, attacker, err
		}
		if user := i / 2 % 10; i%2 == 0 {
			if err := honest.order(url, fmt.Sprintf("user-%d", user), "", fmt.Sprintf("198.51.100.%d", user)); err != nil {
				return honest, attacker, err
			}
		}
		now.Advance(10 * time.Millisecond)
	}
	return honest, attacker, nil
}

// printHottest prints the values that the rule for addresses has seen most often. So does
// penstock status --engine.
func printHottest(out io.Writer, engine *core.Engine) {
	perAddress := func(r rule.Rule) bool { return r.Key().Name == "per-address" }
	for resource, state := range engine.RuleStates(perAddress) {
		fmt.Fprintf(out, "\nThe hottest values of rule %q on %s:\n", state.Name, resource)
		for _, v := range state.Values[:min(3, len(state.Values))] {
			fmt.Fprintf(out, "%-14s %4d passed %4d refused\n", v.Value, v.Passed, v.Refused)
		}
	}
}
