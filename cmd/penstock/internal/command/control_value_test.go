package command_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestControlShowsAndResetsOneValue(t *testing.T) {
	s := newService(t)
	require.NoError(t, s.engine.Load(rules.Set{HotParam: []hotparam.Rule{{
		Name: "per-user", Resource: "search", Param: rule.StringsOf("user"), Limit: 3, Window: time.Minute,
		Penalty: hotparam.Penalty{After: 2, Within: time.Minute, For: time.Hour},
	}}}))
	call := func(user string) bool {
		guard, err := s.engine.Entry(t.Context(), "search", core.String("user", user))
		guard.Exit()
		return err == nil
	}
	for range 6 {
		call("alice")
	}
	control := func(args ...string) answer {
		return user{}.run(t, append([]string{"control", "hotParam"}, append(args, "--rule", "per-user", "--engine", s.address)...)...)
	}
	got := control("show", "--attr", "user=alice")
	assert.Equal(t, s.host()+": alice at search: used 3, 0 remaining, more in 1h0m0s, refused for 1h0m0s\n", got.out, got.err)
	got = control("lift", "--attr", "user=alice")
	assert.Equal(t, s.host()+": the value has no penalty for hotParam rule \"per-user\"\n", got.out, got.err)
	assert.False(t, call("alice"))
	got = control("reset", "--attr", "user=alice")
	assert.Equal(t, s.host()+": the value is as new for hotParam rule \"per-user\"\n", got.out, got.err)
	assert.True(t, call("alice"))

	got = control("reset", "--attr", "tenant=acme")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.err, "say which value of user")
	for _, test := range []struct{ args, want string }{
		{"reset", "which value?"},
		{"forgive", "there are show, reset and lift"},
	} {
		args := []string{test.args}
		if test.args != "reset" {
			args = append(args, "--attr", "user=alice")
		}
		got = control(args...)
		assert.Equal(t, command.ExitUsage, got.code)
		assert.Contains(t, got.err, test.want)
	}
}
