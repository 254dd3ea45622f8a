package tenants_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/splitmix"
	"github.com/penstock-go/penstock/internal/tenants"
	"github.com/penstock-go/penstock/internal/valuehash"
	"github.com/penstock-go/penstock/rule"
)

// One call in eight is looked at, and one in 64 while all of those are of tenants that are known.
func TestFewerCallsAreLookedAtOnceTenantsAreKnown(t *testing.T) {
	t.Parallel()
	var a tenants.Acquaintances
	now := clock.Instant(time.Hour)
	looked := func(calls int, tenant func(i int) uint64) (count float64) {
		for i := range calls {
			if now += 1_000_003; a.LooksAt(now) {
				count++
				a.Meet(tenant(i), now)
			}
		}
		return count
	}
	same := func(i int) uint64 { return splitmix.Mix(uint64(i % 3)) }
	other := func(i int) uint64 { return splitmix.Mix(uint64(i) + 1000) }
	assert.InEpsilon(t, 8000/8, looked(8000, other), .05)
	looked(8*80, same)
	assert.InEpsilon(t, 6400/64, looked(6400, same), .1)
	assert.InEpsilon(t, 8000/8, looked(8000, other), .1, "as soon as one is found that is not")
	assert.True(t, a.IsKnown(same(1), now))
	assert.False(t, a.IsKnown(same(1), now.Add(11*time.Minute)))
}

func TestNamesOfTenantsAreShort(t *testing.T) {
	t.Parallel()
	h := valuehash.New(1)
	name := func(value rule.Attribute, mask rule.Mask) string { return tenants.Fields{Mask: mask}.Name(value, h) }
	assert.Equal(t, "(missing)", name(rule.Attribute{}, ""))
	assert.Equal(t, "a", name(rule.String("a"), ""))
	assert.Equal(t, strings.Repeat("a", 64)+"…", name(rule.String(strings.Repeat("a", 65)), ""))
	assert.Regexp(t, "^#[0-9a-f]{16}$", name(rule.String("a"), rule.MaskHash))
}
