package list_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/list"
)

func TestEditChangesLinesAndLeavesTheOthersAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text  string
		add, remove []string
		want        string
		done        list.Edited
	}{
		{
			"added at the end", "# seen\n10.0.0.0/8  # all\n",
			[]string{"192.0.2.1", "10.0.0.0/8"},
			nil,
			"# seen\n10.0.0.0/8  # all\n192.0.2.1\n",
			list.Edited{Added: []string{"192.0.2.1"}, Present: []string{"10.0.0.0/8"}},
		},
		{"without an end of the last line", "a\r\nb", []string{"c"}, nil, "a\r\nb\nc\n", list.Edited{Added: []string{"c"}}},
		{
			"written in another way", "\ufeff192.0.2.1/32\n2001:DB8::1\n",
			[]string{"192.0.2.1", "2001:db8::1/128"},
			nil,
			"\ufeff192.0.2.1/32\n2001:DB8::1\n",
			list.Edited{Present: []string{"192.0.2.1", "2001:db8::1/128"}},
		},
		{
			"taken out, twice there", "a # why\n\"a\"\nb\n", nil,
			[]string{"a", "c"},
			"b\n",
			list.Edited{Removed: []string{"a"}, Absent: []string{"c"}},
		},
		{"no address is taken out of a prefix", "10.0.0.0/8\n", nil, []string{"10.0.0.1"}, "10.0.0.0/8\n", list.Edited{Absent: []string{"10.0.0.1"}}},
		{"the last one", "a\n", nil, []string{"a"}, "# no entries\n", list.Edited{Removed: []string{"a"}}},
		{"the first one", "# no entries\n", []string{`"a #b"`}, nil, "# no entries\n\"a #b\"\n", list.Edited{Added: []string{`"a #b"`}}},
		{"twice the same", "x\n", []string{"a", "a"}, nil, "x\na\n", list.Edited{Added: []string{"a"}, Present: []string{"a"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var to strings.Builder
			done, err := list.Edit(t.Context(), strings.NewReader(test.text), &to, test.add, test.remove)
			require.NoError(t, err)
			assert.Equal(t, test.want, to.String())
			assert.Equal(t, test.done, done)
			assert.Equal(t, test.want != test.text, done.IsChanged())
		})
	}
}

func TestEditRefusesWhatIsNoEntry(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{"", " a", "a #b", "a\nb", "10.0.0.1/8", "*.example", `"a`} {
		_, err := list.Edit(t.Context(), strings.NewReader("x\n"), &strings.Builder{}, []string{entry}, nil)
		assert.Error(t, err, "%q", entry)
	}
	_, err := list.Edit(t.Context(), strings.NewReader("x\n"), &strings.Builder{}, []string{"a"}, []string{`"a"`})
	assert.ErrorContains(t, err, "is to be added and taken out")
}
