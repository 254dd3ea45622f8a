package access_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/access"
	"github.com/penstock-go/penstock/internal/match"
	"github.com/penstock-go/penstock/rule"
)

// model is a rule and its list, of which each entry is looked at by itself.
type model struct {
	rule    access.Rule
	list    []string
	listed  bool // the list is there
	matches func(entry, value string) bool
}

// passes says what a rule says that has a value to look at.
func (m model) passes(value string) bool {
	in := func(entries []string) bool {
		return slices.ContainsFunc(entries, func(entry string) bool { return m.matches(entry, value) })
	}
	allow, deny := slices.Collect(m.rule.Allow.All()), slices.Collect(m.rule.Deny.All())
	if m.rule.List != "" && m.listed {
		if m.rule.ListAction == access.Allow {
			allow = append(allow, m.list...)
		} else {
			deny = append(deny, m.list...)
		}
	}
	allowsOnly := m.rule.Allow.Len() > 0 || m.rule.List != "" && m.rule.ListAction == access.Allow
	return !in(deny) && (!allowsOnly || in(allow))
}

// inPrefix compares an address with an entry as netip does.
func inPrefix(entry, value string) bool {
	addr, err := netip.ParseAddr(value)
	if err != nil {
		return false
	}
	p, err := netip.ParsePrefix(entry)
	if err != nil {
		one := netip.MustParseAddr(entry)
		p = netip.PrefixFrom(one, one.BitLen())
	}
	if p.Addr().Is4In6() {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Contains(addr.Unmap().WithZone(""))
}

func matchesText(entry, value string) bool {
	if entry == value {
		return true
	}
	p, err := match.Compile(entry)
	return err == nil && p.Matches(value)
}

// rules draws a rule with entries, and what its list has.
func rules(attribute string, entry *rapid.Generator[string], inList *rapid.Generator[string]) *rapid.Generator[model] {
	return rapid.Custom(func(t *rapid.T) model {
		some := rapid.SliceOfNDistinct(entry, 0, 4, rapid.ID[string])
		m := model{
			rule: access.Rule{
				Resource: "r", Attribute: attribute, Allow: texts(some.Draw(t, "allow")...), Deny: texts(some.Draw(t, "deny")...),
				List:    rapid.SampledFrom([]string{"", "l"}).Draw(t, "list"),
				Missing: rapid.SampledFrom([]rule.Missing{"", rule.MissingPass, rule.MissingBlock}).Draw(t, "missing"),
			},
			list:   rapid.SliceOfN(inList, 1, 6).Draw(t, "entries"),
			listed: rapid.Bool().Draw(t, "listed"),
		}
		if m.rule.List != "" {
			m.rule.ListAction = rapid.SampledFrom([]access.Action{"", access.Deny, access.Allow}).Draw(t, "action")
		}
		if m.rule.Allow.Len()+m.rule.Deny.Len() == 0 {
			m.rule.List = "l"
		}
		return m
	})
}

// check compares decisions of a rule with what the model says of each value.
func (m model) check(t *rapid.T, values []string) {
	s := newService(t, m.rule)
	if m.listed && m.rule.List != "" {
		s.lists.Set("l", listOf(t, m.list...))
	}
	for _, value := range values {
		want := rule.Block
		if m.passes(value) {
			want = rule.Pass
		}
		require.Equal(t, want, decides(s.limiter, rule.String(value)), "%q under %+v with the list %q", value, m.rule, m.list)
	}
	missing := access.Kind().WithDefaults(m.rule).Missing
	require.Equal(t, missing == rule.MissingPass, decides(s.limiter, rule.Attribute{}) == rule.Pass)
}

func TestAddressesAreDecidedAsNetipSays(t *testing.T) {
	entries := rapid.SampledFrom([]string{
		"0.0.0.0/0", "::/0", "10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24", "10.1.2.3", "10.1.2.3/32", "128.0.0.0/1", "::ffff:10.2.0.0/112",
		"::ffff:0:0/96", "::ffff:10.1.2.4", "2001:db8::/32", "2001:db8:1::/48", "2001:db8:1:2::/64", "2001:db8::1", "2001:db8::1/128", "::/1", "8000::/1",
	})
	values := []string{
		"10.1.2.3", "10.1.2.4", "10.1.3.0", "10.2.0.9", "11.0.0.0", "9.255.255.255", "0.0.0.0", "255.255.255.255", "127.255.255.255", "128.0.0.0",
		"::ffff:10.1.2.3", "::ffff:10.2.0.1", "::10.1.2.3", "2001:db8::1", "2001:db8::1%eth0", "2001:db8:1::", "2001:db8:1:2::5", "2001:db9::", "::", "::1",
		"7fff::1", "8000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
	}
	rapid.Check(t, func(t *rapid.T) {
		m := rules("", entries, entries).Draw(t, "rule")
		m.matches = inPrefix
		m.check(t, values)
	})
}

func TestTextsAreDecidedAsEachEntrySays(t *testing.T) {
	exact := rapid.SampledFrom([]string{"a", "b", "ab", "aa", "abc", "A", "é", "7"})
	entries := rapid.OneOf(exact, rapid.SampledFrom([]string{"a*", "*b", "*", "?", "[ab]", "[!a]b", "~b", "~^a+$", `\*`}))
	values := []string{"", "a", "b", "ab", "aa", "aab", "abc", "A", "é", "7", "*", "xb"}
	rapid.Check(t, func(t *rapid.T) {
		m := rules("user", entries, exact).Draw(t, "rule")
		m.matches = matchesText
		m.check(t, values)
	})
}
