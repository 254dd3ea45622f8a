package command_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
	"github.com/penstock-go/penstock/rules"
)

func TestExampleIsADocumentWithoutMistakes(t *testing.T) {
	got := user{}.run(t, "example")
	require.Equal(t, command.ExitDone, got.code)
	assert.Empty(t, got.err)
	assert.Contains(t, got.out, "warmUp:\n      period: ")
	judged := user{types: got.out}.run(t, "validate", "-")
	assert.Equal(t, command.ExitDone, judged.code, judged.out)
	all := []string{"example"}
	for _, kind := range rules.NewTable().Definitions() {
		all = append(all, string(kind.Kind()))
	}
	assert.Equal(t, got.out, user{}.run(t, all...).out)
}

func TestExampleOfAnUnknownKindIsAnError(t *testing.T) {
	got := user{}.run(t, "example", "flwo")
	assert.Equal(t, command.ExitUsage, got.code)
	assert.Contains(t, got.err, `there is no kind "flwo" of rules: there are flow`)
	assert.Empty(t, got.out)
}

func TestExampleCompletesKinds(t *testing.T) {
	got := user{}.run(t, "__complete", "example", "")
	assert.True(t, strings.HasPrefix(got.out, "flow\n"), got.out)
}
