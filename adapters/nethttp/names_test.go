package nethttp_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adapters/nethttp"
)

func TestNamesAreMethodAndRoute(t *testing.T) {
	var names nethttp.Names
	for _, test := range []struct{ method, route, want string }{
		{"GET", "/orders/{id}", "GET:/orders/{id}"},
		{"POST", "/orders/:id", "POST:/orders/:id"},
		{"HEAD", "/", "HEAD:/"},
		{"PUT", "/", "PUT:/"},
		{"PATCH", "/", "PATCH:/"},
		{"DELETE", "/", "DELETE:/"},
		{"CONNECT", "/", "CONNECT:/"},
		{"OPTIONS", "/", "OPTIONS:/"},
		{"TRACE", "/", "TRACE:/"},
		{"", "/", "GET:/"},
		{"PURGE", "/", "OTHER:/"},
		{"get", "/", "OTHER:/"},
		{"X-42", "/", "OTHER:/"},
		{"GET", "", nethttp.Unmatched},
		{"X-42", "", nethttp.Unmatched},
	} {
		assert.Equal(t, test.want, names.Name(test.method, test.route), "%s %s", test.method, test.route)
	}
}

func TestNamingAgainAllocatesNothing(t *testing.T) {
	var names nethttp.Names
	names.Name("GET", "/orders/{id}")
	names.Name("PURGE", "/orders/{id}")
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		names.Name("GET", "/orders/{id}")
		names.Name("MADE-UP", "/orders/{id}")
		names.Name("GET", "")
	}))
}

func TestNamesAreSafeForConcurrentUse(t *testing.T) {
	var names nethttp.Names
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 200 {
				route := "/" + string(rune('a'+i%20))
				assert.Equal(t, "GET:"+route, names.Name("GET", route))
			}
		})
	}
	wg.Wait()
}
