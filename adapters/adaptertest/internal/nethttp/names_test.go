package nethttp_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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

func TestCachedNameAllocatesNothing(t *testing.T) {
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

func TestTensOfThousandsOfNamesNeedLittleMemory(t *testing.T) {
	const routes = 30_000
	var names nethttp.Names
	route := func(i int) string { return "/routes/" + strconv.Itoa(i) }
	for i := range routes {
		require.Equal(t, "GET:"+route(i), names.Name("GET", route(i)))
	}
	// Copying all names for each new one would allocate hundreds of gigabytes.
	allocated := testing.AllocsPerRun(1, func() {
		var again nethttp.Names
		for i := range routes {
			again.Name("GET", "/routes/7"+strconv.Itoa(i))
		}
	})
	assert.Less(t, allocated, 4.0*routes)
}

func TestCachedNamesAreBounded(t *testing.T) {
	const bound, more = 10_000, 5_000
	var names nethttp.Names
	for i := range bound + more {
		names.Name("GET", "/"+strconv.Itoa(i))
	}
	routes := []string{"/0", "/" + strconv.Itoa(bound-1), "/" + strconv.Itoa(bound), "/" + strconv.Itoa(bound+more-1)}
	for i, remembered := range []bool{true, true, false, false} {
		allocated := testing.AllocsPerRun(100, func() { names.Name("GET", routes[i]) })
		assert.Equal(t, remembered, allocated == 0, routes[i])
		assert.Equal(t, "GET:"+routes[i], names.Name("GET", routes[i]))
	}
}

func TestNamesOfLongRoutesAreNotCached(t *testing.T) {
	var names nethttp.Names
	for length, remembered := range map[int]bool{1024: true, 1025: false} {
		route := "/" + strings.Repeat("r", length-1)
		assert.Equal(t, "GET:"+route, names.Name("GET", route))
		allocated := testing.AllocsPerRun(100, func() { names.Name("GET", route) })
		assert.Equal(t, remembered, allocated == 0, length)
	}
}
