package access_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/access"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

var texts = rule.StringsOf

func TestDeniedAddressesAreRefused(t *testing.T) {
	s := newService(t, access.Rule{Resource: "r", Deny: texts("10.0.0.0/8", "2001:db8::/32", "192.0.2.7")})
	s.refuse("10.0.0.0", "10.255.255.255", "::ffff:10.1.2.3", "::FFFF:a01:203", "2001:db8::1", "2001:db8::1%eth0", "192.0.2.7")
	s.pass("11.0.0.0", "9.255.255.255", "192.0.2.6", "2001:db9::", "::10.1.2.3", nil)
}

func TestOnlyAllowedAddressesPass(t *testing.T) {
	s := newService(t, access.Rule{Resource: "r", Allow: texts("10.0.0.0/8", "::1")})
	s.pass("10.1.2.3", "::1", "::1%lo", "::ffff:10.1.2.3")
	s.refuse("11.0.0.1", "::2", "0.0.0.1", nil)
}

func TestDenyWinsOverAllow(t *testing.T) {
	s := newService(t, access.Rule{Resource: "r", Allow: texts("10.0.0.0/8", "192.0.2.0/24"), Deny: texts("10.9.0.0/16", "192.0.0.0/8"), List: "l"})
	s.set("l", "10.8.0.0/16")
	s.pass("10.1.2.3", "10.7.255.255", "10.10.0.0")
	s.refuse("10.9.1.1", "192.0.2.1", "10.8.0.1", "172.16.0.1")

	s = newService(t, access.Rule{Resource: "r", Deny: texts("10.9.0.0/16"), List: "l", ListAction: access.Allow})
	s.set("l", "10.0.0.0/8")
	s.pass("10.8.1.1")
	s.refuse("10.9.1.1", "11.0.0.0")
}

// A value that is no address never passes, whatever the rule allows.
func TestValuesThatAreNoAddressesAreRefused(t *testing.T) {
	values := []any{
		"", " ", "unknown", "10.0.0.300", "10.0.0.1:80", "[::1]", "010.0.0.1", "10.0.0.1 ", "10.0.0.1,10.0.0.2", "10.0.0.0/8",
		"::1::", "1.2.3", "%eth0", "::1%", "10.0.0.1\x00", 7, 0, -1, true, false,
	}
	for name, r := range map[string]access.Rule{
		"deny":       {Deny: texts("192.0.2.0/24")},
		"allow all":  {Allow: texts("0.0.0.0/0", "::/0")},
		"list":       {List: "l"},
		"allow list": {List: "l", ListAction: access.Allow},
		"no list":    {List: "none"},
		"missing":    {Deny: texts("192.0.2.0/24"), Missing: rule.MissingPass},
	} {
		t.Run(name, func(t *testing.T) {
			r.Resource = "r"
			s := newService(t, r)
			s.set("l", "0.0.0.0/0", "::/0")
			s.refuse(values...)
		})
	}
}

func TestMissingAttributesAreWhatTheRuleSays(t *testing.T) {
	for _, c := range []struct {
		name   string
		rule   access.Rule
		passes bool
	}{
		{"deny", access.Rule{Deny: texts("::1")}, true},
		{"deny list", access.Rule{List: "l"}, true},
		{"allow", access.Rule{Allow: texts("::1")}, false},
		{"allow list", access.Rule{List: "l", ListAction: access.Allow}, false},
		{"deny and block", access.Rule{Deny: texts("::1"), Missing: rule.MissingBlock}, false},
		{"allow and pass", access.Rule{Allow: texts("::1"), Missing: rule.MissingPass}, true},
		{"deny of a user", access.Rule{Attribute: "user", Deny: texts("*")}, true},
		{"allow of a user", access.Rule{Attribute: "user", Allow: texts("*")}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.rule.Resource = "r"
			s := newService(t, c.rule)
			if c.passes {
				s.pass(nil)
			} else {
				s.refuse(nil)
			}
		})
	}
}

func TestTextsAndPatternsAreCompared(t *testing.T) {
	s := newService(t, access.Rule{Resource: "r", Attribute: "user", Deny: texts("banned", "test-*", `a\*`, "~^[0-9]{4}$", "7", "true", "1.2.3.4"), List: "l"})
	s.set("l", "evil", "12", "12345", "false")
	s.refuse("banned", "test-", "test-x", "a*", "1234", "7", 7, true, "true", 1234, "evil", 12, 12345, false, "1.2.3.4")
	s.pass("Banned", "banned ", "tes", "ab", 8, 123456, "12346", "", nil, "1.2.3.5", "::ffff:1.2.3.4")

	s = newService(t, access.Rule{Resource: "r", Attribute: "user", Allow: texts("vip", "*-ok", "1000")})
	s.pass("vip", "x-ok", 1000)
	s.refuse("", "x", 7, false, nil)
}

// An address in a list stands for all of its spellings, whatever the attribute.
func TestAddressesOfListsAreComparedWithTexts(t *testing.T) {
	s := newService(t, access.Rule{Resource: "r", Attribute: "header:X-Peer", List: "l"})
	s.set("l", "10.0.0.0/8", "::1")
	s.refuse("10.1.2.3", "0:0::1")
	s.pass("11.1.2.3", "acme", 7)
}

func TestMissingListDeniesNobody(t *testing.T) {
	s := newService(t, access.Rule{Resource: "r", Deny: texts("10.0.0.0/8"), List: "l"})
	s.reported("ready to listMissing")
	s.pass("192.0.2.1")
	s.refuse("10.0.0.1")
	s.is(access.ListMissing, 0)
	s.reported()

	s.set("l", "192.0.2.0/24", "192.0.3.0/24")
	s.refuse("192.0.2.1", "10.0.0.1")
	s.reported("listMissing to ready")
	s.is(access.Ready, 2)

	s.lists.Set("l", nil)
	s.pass("192.0.2.1")
	s.reported("ready to listMissing")
}

func TestMissingListAllowsNobody(t *testing.T) {
	s := newService(t, access.Rule{Resource: "r", Allow: texts("10.0.0.0/8"), List: "l", ListAction: access.Allow})
	s.refuse("192.0.2.1", nil)
	s.pass("10.0.0.1")
	s.is(access.ListMissing, 0)
	s.reported("ready to listMissing")

	s.set("l", "192.0.2.0/24")
	s.pass("192.0.2.1", "10.0.0.1")
	s.refuse("192.0.3.1")
	s.is(access.Ready, 1)
	s.reported("listMissing to ready")
}

// A list of texts cannot be meant for a rule about addresses.
func TestListWithoutAddressesIsMissingForARuleAboutAddresses(t *testing.T) {
	s := newService(t, access.Rule{Resource: "r", List: "l"})
	s.set("l", "acme", "initech")
	s.is(access.ListMissing, 0)
	s.set("l")
	s.is(access.Ready, 0)
	s.pass("10.0.0.1")
	s.set("l", `"acme"`, "10.0.0.0/8")
	s.is(access.Ready, 2)
	s.refuse("10.0.0.1")

	s = newService(t, access.Rule{Resource: "r", Attribute: "user", List: "l"})
	s.set("l", "acme")
	s.is(access.Ready, 1)
}

// The state is found by looking at the status too, without a call.
func TestStatusReportsAChangeOfState(t *testing.T) {
	s := newService(t, access.Rule{Resource: "r", List: "l"})
	s.set("l", "::1")
	s.is(access.Ready, 1)
	s.reported("ready to listMissing", "listMissing to ready")
}

func TestReloadDecidesTheNextCallAndReportsOnce(t *testing.T) {
	s := newService(t, access.Rule{Resource: "r", List: "l"})
	s.reported("ready to listMissing")
	s.reload(access.Rule{Resource: "r", List: "l", Deny: texts("::1")})
	s.refuse("::1")
	s.reported()

	s.set("other", "::2")
	old := s.limiter
	s.reload(access.Rule{Resource: "r", List: "other"})
	s.reported("listMissing to ready")
	s.refuse("::2")
	s.pass("::1")

	assert.Equal(t, rule.Block, decides(old, rule.String("::1")), "calls under way see the old version")
	s.reported() // which reports nothing any more
	assert.Equal(t, access.ListMissing, old.Status(epoch).State)
	s.reported()

	s.reload(access.Rule{Resource: "r", Deny: texts("::3")})
	status := s.limiter.Status(epoch)
	assert.Equal(t, access.Ready, status.State)
	require.Len(t, status.Gauges, 1)
	assert.True(t, math.IsNaN(status.Gauges[0]), "a rule without a list has no number of entries")
	s.reported()
}

// A rule may guard thousands of resources, of which each has a limiter.
func TestMissingListIsReportedOnceForAllResources(t *testing.T) {
	s := newService(t, access.Rule{Match: "*", List: "l"})
	for range 100 {
		other := s.rule.NewLimiter(s.env())
		other.(rule.Activator).Activate(epoch)
		require.Equal(t, access.ListMissing, other.Status(epoch).State)
		decides(other, rule.String("::1"))
	}
	s.reported("ready to listMissing")
	s.set("l", "::1")
	s.refuse("::1")
	s.reported("listMissing to ready")
}

// Nothing is held while a change is reported: who receives it may ask the limiter, or
// change the list again.
func TestChangeOfStateMayChangeTheList(t *testing.T) {
	s := newService(t, access.Rule{Resource: "r", List: "l"})
	s.changes = nil
	env := s.env()
	env.Changed = func(at clock.Instant, from, to, _ string) {
		s.changed(at, from, to, "")
		if len(s.changes) == 1 {
			s.lists.Set("l", nil)
		}
		decides(s.limiter, rule.String("::2"))
	}
	s.limiter = s.rule.Adopt(s.limiter, env)
	s.set("l", "::1")
	decides(s.limiter, rule.String("::1"))
	s.reported("listMissing to ready", "ready to listMissing")
}

func TestLimiterOfAnotherKindIsNotAdopted(t *testing.T) {
	s := newService(t, access.Rule{Resource: "r", List: "l"})
	assert.Nil(t, s.rule.Adopt(nil, s.env()))
}

func TestLimiterHasNothingToForget(t *testing.T) {
	s := newService(t, access.Rule{Resource: "r", List: "l"})
	s.limiter.GiveBack(epoch, 0, 1)
	assert.True(t, s.limiter.Idle(epoch))
}

func TestNoDecisionAllocates(t *testing.T) {
	s := newService(t, access.Rule{Resource: "r", Deny: texts("10.0.0.0/8"), List: "l"})
	s.set("l", "192.0.2.0/24", "2001:db8::/32")
	user := newService(t, access.Rule{Resource: "r", Attribute: "user", Deny: texts("banned", "test-*", "*evil*"), List: "l"})
	user.set("l", "acme", "123456789")
	numbers := newService(t, access.Rule{Resource: "r", Attribute: "user", Allow: texts("banned", "1234567"), List: "l"})
	numbers.set("l", "acme", "123456789")
	for _, value := range []any{
		"10.1.2.3", "192.0.2.1", "2001:db8::1", "::ffff:10.1.2.3%zone", "2001:db9::", "no address", "1.2.3.4.5", "banned", "acme", "test-x",
		"most evil", "", nil, 123456789, 1234567, -123456789, true,
	} {
		a := attribute(value)
		assert.Zero(t, testing.AllocsPerRun(100, func() { decides(s.limiter, a) }), "address %v", value)
		assert.Zero(t, testing.AllocsPerRun(100, func() { decides(numbers.limiter, a) }), "number %v", value)
		// Patterns have to look at the text of a number; what they match with comes from a pool, of which the race
		// detector drops some.
		if _, isNumber := a.Number(); !isNumber && !raceEnabled {
			assert.Zero(t, testing.AllocsPerRun(100, func() { decides(user.limiter, a) }), "user %v", value)
		}
	}
}
