package etcd

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/fleet"
)

func TestAnnouncementIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Float64(), rapid.Float64Range(0, 1), rapid.Just(math.NaN()), rapid.Just(math.Inf(1)))
		self := fleet.Instance{ID: "a"}
		for range rapid.IntRange(0, fleet.MaxUses+10).Draw(t, "limits") {
			self.Limits = append(self.Limits, fleet.Use{
				Key: rapid.String().Draw(t, "key"), Demand: number.Draw(t, "demand"),
				Passed: number.Draw(t, "passed"), Reserved: number.Draw(t, "reserved"),
			})
		}
		data := encode("owner", &self)
		require.LessOrEqual(t, len(data), maxValue)
		owner, read, err := decode(data, "a")
		require.NoError(t, err)
		require.Equal(t, "owner", owner)
		require.Len(t, read.Limits, min(len(self.Limits), fleet.MaxUses))
		for i, was := range self.Limits[:len(read.Limits)] {
			is := read.Limits[i]
			require.InEpsilon(t, 1+finite(was.Demand, math.MaxInt64), 1+is.Demand, .006)
			require.GreaterOrEqual(t, is.Reserved, finite(was.Reserved, 1), "what is reserved is never too little")
			require.LessOrEqual(t, is.Reserved, finite(was.Reserved, 1)+1e-6)
		}
	})
}

func TestLongKeysAreHashed(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", maxKey)
	assert.Equal(t, long, shorten(long))
	assert.Len(t, shorten(long+"k"), len("sha256:")+64)
	assert.Len(t, shorten("\xff"), len("sha256:")+64, "a key that JSON has no text for")
	assert.NotEqual(t, shorten(long+"k"), shorten(long+"l"))
}

func TestAnnouncementHasChangedEnough(t *testing.T) {
	t.Parallel()
	was := fleet.Use{Key: "k", Demand: 1000, Passed: 100, Reserved: .5}
	for name, test := range map[string]struct {
		change func(*fleet.Use)
		want   bool
	}{
		"not at all":              {func(*fleet.Use) {}, false},
		"another limit":           {func(u *fleet.Use) { u.Key = "l" }, true},
		"a little more demand":    {func(u *fleet.Use) { u.Demand = 1049 }, false},
		"more demand":             {func(u *fleet.Use) { u.Demand = 1053 }, true},
		"less passes":             {func(u *fleet.Use) { u.Passed = 94 }, true},
		"a bit more is reserved":  {func(u *fleet.Use) { u.Reserved = math.Nextafter(.5, 1) }, true},
		"a bit less is reserved":  {func(u *fleet.Use) { u.Reserved = .497 }, false},
		"less is reserved":        {func(u *fleet.Use) { u.Reserved = .49 }, true},
		"demand that is nearly 0": {func(u *fleet.Use) { u.Demand = 1000.01 }, false},
	} {
		is := was
		test.change(&is)
		assert.Equal(t, test.want, hasChanged(&fleet.Instance{Limits: []fleet.Use{was}}, &fleet.Instance{Limits: []fleet.Use{is}}), name)
	}
	assert.True(t, hasChanged(&fleet.Instance{}, &fleet.Instance{Limits: []fleet.Use{was}}))
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"o":"x","l":[{"k":"flow/pay","d":1,"p":1,"r":0.5}]}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, instance, err := decode(data, "a")
		assert.Equal(t, "a", instance.ID)
		assert.LessOrEqual(t, len(instance.Limits), fleet.MaxUses)
		if err == nil {
			assert.True(t, json.Valid(data))
		}
	})
}
