package names

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// thing is what the tables of the tests hold.
type thing struct {
	Entry
	number int
}

func tableOf(names ...string) *Table[thing] {
	t := new(Table[thing])
	t.Init()
	for i, name := range names {
		t.Put(&thing{Entry: Entry{Name: name}, number: i})
	}
	return t
}

func TestNamesWithOneShortcutHaveValuesOfTheirOwn(t *testing.T) {
	t.Parallel()
	names := []string{"POST /v1/a/my-orders", "POST /v1/b/my-orders", "POST /v1/c/my-orders"}
	for _, name := range names {
		require.Equal(t, quickHash(names[0]), quickHash(name), name)
	}
	table := tableOf(names...)
	for i, name := range names {
		assert.Equal(t, i, table.Get(name).number, name)
	}
}

func TestNamesOfAnyLengthAreFoundByTheirShortcuts(t *testing.T) {
	t.Parallel()
	const letters = "abcdefghijklmnopqrstuvwxyz"
	for n := range len(letters) + 1 {
		table := tableOf(letters[:n])
		r := table.shortcuts.slot(quickHash(letters[:n])).value.Load()
		require.NotNil(t, r)
		assert.Equal(t, letters[:n], r.Name)
	}
}

func TestEvictedValuesHaveNoShortcuts(t *testing.T) {
	t.Parallel()
	table := tableOf()
	for i := range 2000 {
		table.Put(&thing{Entry: Entry{Name: fmt.Sprint("resource ", i)}})
	}
	held := func() (count int) {
		for i := range table.shortcuts {
			if table.shortcuts[i].value.Load() != nil {
				count++
			}
		}
		return count
	}
	require.Greater(t, held(), len(table.shortcuts)/2)
	for _, r := range table.All() {
		r.Evicted.Store(true)
	}
	for i := range parts {
		table.DropEvicted(i)
	}
	assert.Zero(t, held())
	assert.Empty(t, table.All())
}

// Each value that was not evicted comes once in a round, also if the table changes meanwhile.
func TestARoundMeetsEachValueOnce(t *testing.T) {
	t.Parallel()
	const count = 3000
	table := tableOf()
	for i := range count {
		table.Put(&thing{Entry: Entry{Name: fmt.Sprint(i)}, number: i})
	}
	table.Get("7").Evicted.Store(true)
	met := make(map[string]int)
	var round Round[thing]
	require.True(t, round.AtStart())
	for ended := false; !ended; {
		for r := round.Next(table); r != nil; r = round.Next(table) {
			met[r.Name]++
		}
		table.DropEvicted(round.EndPart())
		ended = round.AtStart()
	}
	assert.Len(t, met, count-1)
	for name, times := range met {
		assert.Equal(t, 1, times, name)
	}
}

func TestTablesHoldWhatBeginsWithAnEntry(t *testing.T) {
	t.Parallel()
	type other struct {
		_ int
		Entry
	}
	assert.Panics(t, new(Table[other]).Init)
	assert.Panics(t, new(Table[int]).Init)
	assert.NotPanics(t, new(Table[thing]).Init)
}
