package list_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/list"
)

func TestHandleFollowsTheListOfItsName(t *testing.T) {
	r := list.NewRegistry()
	h := r.Handle("scrapers")
	assert.Same(t, h, r.Handle("scrapers"))
	assert.Nil(t, h.List())
	assert.Nil(t, r.Get("scrapers"))
	assert.Empty(t, r.Names())
	r.Set("nothing", nil)

	one, other := parse(t, "10.0.0.1"), parse(t, "10.0.0.2")
	r.Set("scrapers", one)
	r.Set("partners", other)
	assert.Same(t, one, h.List())
	assert.Equal(t, []string{"partners", "scrapers"}, r.Names())
	r.Set("scrapers", other)
	assert.Same(t, other, h.List())
	assert.Same(t, other, r.Get("scrapers"))

	r.Set("scrapers", nil)
	assert.Nil(t, h.List())
	assert.Equal(t, []string{"partners"}, r.Names())
	r.Set("scrapers", one)
	assert.Same(t, one, h.List(), "a handle stays valid")
}

// What calls read is always one of the lists that were set, whole.
func TestListsAreSwappedWhileTheyAreRead(t *testing.T) {
	r := list.NewRegistry()
	versions := []*list.List{parse(t, "10.0.0.1\n10.0.0.3"), parse(t, "10.0.0.2\n10.0.0.3")}
	r.Set("l", versions[0])
	var reading atomic.Int64
	var group sync.WaitGroup
	for range 4 {
		reading.Add(1)
		group.Go(func() {
			defer reading.Add(-1)
			h := r.Handle("l")
			for range 1000 {
				l := h.List()
				if l.ContainsText("10.0.0.1") == l.ContainsText("10.0.0.2") || !l.ContainsText("10.0.0.3") {
					assert.Fail(t, "a list that was never set")
					return
				}
				runtime.Gosched() // so that lists are swapped between reads
			}
		})
	}
	for i := 0; reading.Load() > 0; i++ {
		r.Set("l", versions[i%2])
		r.Handle("l")
		runtime.Gosched()
	}
	group.Wait()
}

func TestReplacedListIsFreedWhenNobodyReadsItAnyMore(t *testing.T) {
	r := list.NewRegistry()
	h := r.Handle("l")
	r.Set("l", parse(t, "10.0.0.1\n2001:db8::/32"))
	reader := h.List()
	old := weak.Make(reader)
	r.Set("l", parse(t, "10.0.0.2"))
	runtime.GC()
	require.NotNil(t, old.Value(), "a call reads it")
	assert.True(t, reader.ContainsText("10.0.0.1"))
	runtime.KeepAlive(reader)
	reader = nil
	for range 10 {
		runtime.GC()
		if old.Value() == nil {
			return
		}
	}
	assert.Fail(t, "the old list is not freed")
	runtime.KeepAlive(h)
}

func TestLookUpsAllocateNothing(t *testing.T) {
	l := parse(t, "10.0.0.0/8\n\"acme\"\n2001:db8::/32\n::1\n")
	r := list.NewRegistry()
	r.Set("l", l)
	h := r.Handle("l")
	for _, text := range []string{"10.1.2.3", "11.1.2.3", "acme", "initech", "2001:db8::7", "::2%zone", "no address", "1.2.3.4.5", "10.0.0.300", ""} {
		assert.Zero(t, testing.AllocsPerRun(100, func() {
			h.List().ContainsText(text)
			addr, _ := list.ParseAddr(text)
			h.List().ContainsAddr(addr)
		}), text)
	}
}
