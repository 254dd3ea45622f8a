package signal

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rule"
)

func TestOverrideReadsTheRestFromTheBase(t *testing.T) {
	broken := errors.New("the pool is closed")
	with := Map{
		rule.SignalLoad: func(context.Context) (float64, error) { return 3, nil },
		"pool":          func(context.Context) (float64, error) { return 0, broken },
		"nothing":       nil,
	}
	source := Override(newMachine(t).source, with)
	delete(with, rule.SignalLoad) // it has a copy
	load, err := source.Read(t.Context(), rule.SignalLoad)
	require.NoError(t, err)
	require.InDelta(t, 3, load, 0)
	_, err = source.Read(t.Context(), "pool")
	require.ErrorIs(t, err, broken)
	memory, err := source.Read(t.Context(), rule.SignalMemory)
	require.NoError(t, err)
	require.InDelta(t, 0.25, memory, 1e-9)
	_, err = source.Read(t.Context(), "nothing")
	require.ErrorContains(t, err, "no such signal of the system")
}

func TestUnknownSignalOfAMapNamesThoseThereAre(t *testing.T) {
	read := func(context.Context) (float64, error) { return 1, nil }
	_, err := Map{"b": read, "a": read}.Read(t.Context(), "c")
	require.EqualError(t, err, `signal: "c": there is no such signal; known are a, b`)
	_, err = Map(nil).Read(t.Context(), "c")
	require.EqualError(t, err, `signal: "c": there is no such signal; known are none`)
}
