package simulate_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// passedOf returns how many calls of a resource passed by a time.
func passedOf(result simulate.Result, resource string, by float64) (count int) {
	for _, row := range result.Seconds {
		if row.Resource == resource && float64(row.Second) < by {
			count += row.Passed
		}
	}
	return count
}

// A balance lets pass what it has, and what recharges add, on an instance and in the fleet.
func TestRechargesLetCallsPass(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		document  string
		instances int
		attrs     []simulate.Attr
		value     map[string]any
		first     int // calls that pass by the first 10 s
		then      int // by the end
	}{
		"instance":  {`flow: [{name: credit, resource: r, algorithm: prepaid, limit: 20}]`, 1, nil, nil, 20, 45},
		"instances": {`flow: [{name: credit, resource: r, algorithm: prepaid, limit: 10}]`, 2, nil, nil, 20, 70},
		"fleet": {
			`flow: [{name: credit, resource: r, algorithm: prepaid, limit: 20, scope: fleet}]`, 3, nil, nil, 20, 45,
		},
		"values": {
			`hotParam: [{name: credit, resource: r, param: tenant, algorithm: prepaid, limit: 20}]`, 1,
			[]simulate.Attr{{Name: "tenant", Values: []any{"acme"}}},
			map[string]any{"tenant": "acme"},
			20, 45,
		},
		"another value": {
			`hotParam: [{name: credit, resource: r, param: tenant, algorithm: prepaid, limit: 20, scope: fleet}]`, 2,
			[]simulate.Attr{{Name: "tenant", Values: []any{"acme"}}},
			map[string]any{"tenant": 7},
			20, 20,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, err := rules.Parse("", []byte(c.document))
			require.NoError(t, err)
			load := simulate.Load{
				Streams: []simulate.Stream{{Resource: "r", Rate: 10, Until: 30 * time.Second, Attrs: c.attrs}},
				Recharges: []simulate.Recharge{
					{At: 10 * time.Second, Rule: "credit", Tokens: 30, Attrs: c.value},
					{At: 10 * time.Second, Rule: "credit", Tokens: -5, Attrs: c.value},
					{At: time.Hour, Rule: "none", Tokens: 1},
				},
			}
			result, err := simulate.Run(context.Background(), set, load, simulate.Options{Instances: c.instances})
			require.NoError(t, err)
			assert.Equal(t, c.first, passedOf(result, "r", 10))
			assert.Equal(t, c.then, passedOf(result, "r", 30))
		})
	}
}

// What is wrong with a recharge is told with its field.
func TestFaultsOfRecharges(t *testing.T) {
	t.Parallel()
	set, err := rules.Parse("", []byte(`flow: [{name: credit, resource: r, algorithm: prepaid, limit: 20}, {name: other, resource: r, limit: 5}]`))
	require.NoError(t, err)
	run := func(recharges ...simulate.Recharge) error {
		_, err := simulate.Run(context.Background(), set, simulate.Load{
			Streams: []simulate.Stream{{Resource: "r", Rate: 10, Until: 3 * time.Second}}, Recharges: recharges,
		}, simulate.Options{})
		return err
	}
	err = run(simulate.Recharge{At: -1, Attrs: map[string]any{"a": 1.5}}, simulate.Recharge{Rule: "credit", Tokens: 1 << 62})
	var faults simulate.Faults
	require.ErrorAs(t, err, &faults)
	fields := make([]string, len(faults))
	for i, f := range faults {
		fields[i] = f.Field
	}
	assert.Equal(t, []string{"recharges[0].at", "recharges[0].rule", "recharges[0].tokens", "recharges[0].attrs.a", "recharges[1].tokens"}, fields)
	for rule, says := range map[string]string{"none": "no rule", "other": "balance"} {
		err = run(simulate.Recharge{At: time.Second, Rule: rule, Tokens: 5})
		require.ErrorAs(t, err, &faults)
		assert.Equal(t, "recharges[0].rule", faults[0].Field)
		assert.ErrorContains(t, err, says)
	}
}
