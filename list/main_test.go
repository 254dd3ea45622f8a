package list_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/list"
)

func TestMain(m *testing.M) {
	longtest.ShortChecks(20)
	goleak.VerifyTestMain(m)
}

// parse reads the text of a list that has to be sound.
func parse(t testing.TB, text string) *list.List {
	t.Helper()
	l, err := list.Parse(context.Background(), strings.NewReader(text), list.Options{})
	require.NoError(t, err)
	return l
}

// mistakesOf reads the text of a list that must not be sound.
func mistakesOf(t testing.TB, text string, o list.Options) []string {
	t.Helper()
	l, err := list.Parse(context.Background(), strings.NewReader(text), o)
	require.Nil(t, l)
	var faults *list.Error
	require.ErrorAs(t, err, &faults)
	require.GreaterOrEqual(t, faults.Count, len(faults.Mistakes))
	lines := make([]string, len(faults.Mistakes))
	for i, m := range faults.Mistakes {
		lines[i] = m.String()
	}
	return lines
}
