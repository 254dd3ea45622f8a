package command_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
)

// By default the last of several values counts, and nobody is told of the others.
func TestFlagThatIsGivenTwiceIsAnError(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"status", "--app", "a", "--app", "b"}, `invalid argument "b" for "--app" flag: "a" is given too: leave one out`},
		{[]string{"explain", "x", "--engine", "a", "--engine", "b"}, `invalid argument "b" for "--engine" flag: "a" is given too`},
		{[]string{"push", "x", "--timeout=1s", "--timeout", "2s"}, `"1s" is given too`},
		{[]string{"push", "x", "--yes", "--yes=false"}, `"true" is given too`},
		{[]string{"lists", "push", "a", "x", "-m", "a", "--message", "b"}, `"a" is given too`},
		{[]string{"metrics", "--from", "12:00:00", "--from", "13:00:00"}, `"12:00:00" is given too`},
		{[]string{"simulate", "--output", "json", "-o", "text"}, `"json" is given too`},
	} {
		_, stderr, code := execute(t, "", c.args...)
		assert.Equal(t, command.ExitUsage, code, c.args)
		assert.Contains(t, stderr, c.want, c.args)
	}
	_, stderr, code := execute(t, "", "status", "--engine", "127.0.0.1:1", "--rule", "a", "--rule", "a")
	assert.Equal(t, command.ExitFailed, code, stderr)
	assert.Contains(t, stderr, "127.0.0.1:1", "the same twice is no contradiction")
}
