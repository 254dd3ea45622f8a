package access_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/access"
	"github.com/penstock-go/penstock/rule"
)

func TestMistakesInARuleAreAllReported(t *testing.T) {
	many := make([]string, access.MaxEntries+1)
	for i := range many {
		many[i] = strconv.Itoa(i)
	}
	for _, c := range []struct {
		name string
		rule access.Rule
		want []string // empty: it is sound
	}{
		{"deny", access.Rule{Deny: texts("10.0.0.0/8")}, nil},
		{"allow", access.Rule{Allow: texts("::1")}, nil},
		{"list", access.Rule{List: "scrapers"}, nil},
		{"all of them", access.Rule{Allow: texts("10.0.0.0/8"), Deny: texts("10.9.0.0/16"), List: "l", ListAction: access.Allow, Missing: rule.MissingPass}, nil},
		{"patterns", access.Rule{Attribute: "user", Deny: texts("test-*", "~^x", `\*`)}, nil},
		{"as many as there may be", access.Rule{Attribute: "user", Deny: texts(many[1:]...)}, nil},
		{"nothing", access.Rule{}, []string{"deny is missing, and so are allow and list: write who may not call, or who may"}},
		{"bits beyond the length", access.Rule{Deny: texts("10.1.2.3/8")}, []string{
			`deny has a mistake: "10.1.2.3/8" has bits beyond its length: write 10.0.0.0/8 if the network is meant, 10.1.2.3 if the address is`,
		}},
		{"several", access.Rule{Allow: texts("acme", "fe80::1%eth0"), Deny: texts("10.0.0.300")}, []string{
			`allow has a mistake: "acme" is no address and no prefix: write one such as 192.0.2.1, 10.0.0.0/8 or 2001:db8::/32`,
			`allow has a mistake: "fe80::1%eth0" has a zone, which means something on one machine only: write fe80::1`,
			`deny has a mistake: "10.0.0.300" is no address: IPv4 field has value >255`,
		}},
		{"a pattern for addresses", access.Rule{Deny: texts("10.*")}, []string{
			`deny has a mistake: "10.*" is no address and no prefix: write one such as 192.0.2.1, 10.0.0.0/8 or 2001:db8::/32`,
		}},
		{"a broken pattern", access.Rule{Attribute: "user", Deny: texts("[a", "b")}, []string{`deny has a mistake: the pattern "[a", character 1: `}},
		{"an entry twice", access.Rule{Deny: texts("::1", "::1")}, []string{`deny has "::1" twice: remove one`}},
		{"too many entries", access.Rule{Attribute: "user", Deny: texts(many...)}, []string{`deny has 1001 entries: must have at most 1000; put them in a list and name that in list`}},
		{"an action without a list", access.Rule{Deny: texts("::1"), ListAction: access.Deny}, []string{`listAction has no effect without list: remove it or name a list`}},
		{"an unknown action", access.Rule{List: "l", ListAction: "pass"}, []string{`listAction is "pass": must be "deny" or "allow"`}},
		{"an unknown missing", access.Rule{List: "l", Missing: "share"}, []string{`missing is "share": must be "pass" or "block"`}},
		{"a name that no list can have", access.Rule{List: "a/b"}, []string{`list is no name of a list: `}},
		{"a character that cannot be seen", access.Rule{Attribute: "user", Deny: texts("a\x00")}, []string{`deny has an entry that is "a\x00": it has a character U+0000`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.rule.Resource = "r"
			var got []string
			for _, fault := range access.Kind().Faults(c.rule) {
				got = append(got, fault.Field+" "+fault.Message)
			}
			require.Len(t, got, len(c.want), "%q", got)
			for i, want := range c.want {
				assert.True(t, strings.HasPrefix(got[i], want), "%s\n%s", got[i], want)
			}
		})
	}
}

func TestDefaultsFollowFromWhatIsAllowed(t *testing.T) {
	deny := access.Kind().WithDefaults(access.Rule{Resource: "r", Deny: texts("::1")})
	assert.Equal(t, access.Rule{Name: "r", Resource: "r", Attribute: "ip", Deny: texts("::1"), Missing: rule.MissingPass}, deny)
	assert.Equal(t, rule.MissingBlock, access.Kind().WithDefaults(access.Rule{Resource: "r", Allow: texts("::1")}).Missing)
	list := access.Kind().WithDefaults(access.Rule{Resource: "r", List: "l"})
	assert.Equal(t, access.Deny, list.ListAction)
	assert.Equal(t, rule.MissingPass, list.Missing)
	assert.Equal(t, rule.MissingBlock, access.Kind().WithDefaults(access.Rule{Resource: "r", List: "l", ListAction: access.Allow}).Missing)
	assert.Equal(t, rule.MissingPass, access.Kind().WithDefaults(access.Rule{Resource: "r", List: "l", ListAction: access.Allow, Missing: rule.MissingPass}).Missing)
}

func TestKindSaysWhatARuleLooksAt(t *testing.T) {
	kind := access.Kind()
	assert.Equal(t, rule.PhaseAccess, kind.Phase())
	assert.Equal(t, rule.Denied, kind.Reason())
	r := kind.Of(access.Rule{Resource: "r", List: "scrapers"}).WithDefaults()
	assert.Equal(t, []string{"ip"}, r.Attributes())
	assert.Equal(t, []string{"scrapers"}, r.Lists())
	r = kind.Of(access.Rule{Resource: "r", Attribute: "origin", Deny: texts("x")}).WithDefaults()
	assert.Equal(t, []string{"origin"}, r.Attributes())
	assert.Empty(t, r.Lists())
	for _, example := range kind.Examples() {
		assert.Empty(t, example.Rule.Faults())
	}
}

func ExampleRule() {
	r := access.Kind().WithDefaults(access.Rule{Resource: "admin", Allow: rule.StringsOf("10.0.0.0/8"), Deny: rule.StringsOf("10.9.0.0/16")})
	fmt.Printf("%s: by %s; calls without it: %s\n", r.Name, r.Attribute, r.Missing)
	// Output: admin: by ip; calls without it: block
}

func ExampleKind_faults() {
	for _, fault := range access.Kind().Faults(access.Rule{Resource: "admin", Deny: rule.StringsOf("10.1.2.3/8"), ListAction: access.Allow}) {
		fmt.Println(fault.Field, fault.Message)
	}
	// Output:
	// deny has a mistake: "10.1.2.3/8" has bits beyond its length: write 10.0.0.0/8 if the network is meant, 10.1.2.3 if the address is
	// listAction has no effect without list: remove it or name a list
}
