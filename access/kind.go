package access

import (
	"cmp"
	"errors"
	"strings"

	"github.com/penstock-go/penstock/internal/match"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rule"
)

// Kind returns what the engine knows of access rules.
func Kind() *rule.Type[Rule] {
	return rule.Define(rule.Spec[Rule]{
		Kind:       "access",
		Phase:      rule.PhaseAccess,
		Reason:     rule.Denied,
		Common:     common,
		Fields:     fields(),
		Examples:   examples(),
		Defaults:   withDefaults,
		Validate:   validate,
		Attributes: func(r *Rule) []string { return []string{r.Attribute} },
		Lists:      lists,
		// A rule without entries is none.
		NamesValues: func(*Rule) bool { return true },
		Compile:     func(r *Rule, version uint64) any { return compile(*r, version) },
		New:         newLimiter,
		Adopt:       adopt,
		Gauges: []rule.Gauge{
			{Name: "list_entries", Help: "Entries of the list, 0 if it is missing."},
		},
		States: []string{Ready, ListMissing},
	})
}

func common(r *Rule) rule.Common {
	return rule.Common{
		Name: &r.Name, Resource: &r.Resource, Match: &r.Match, Except: &r.Except, Shared: &r.Shared, Origin: &r.Origin, Shadow: &r.Shadow,
	}
}

// lists returns the name of the list that a rule refers to.
func lists(r *Rule) []string {
	if r.List == "" {
		return nil
	}
	return []string{r.List}
}

func fields() []rule.Field[Rule] {
	return []rule.Field[Rule]{
		rule.FieldOf("attribute", func(r *Rule) *string { return &r.Attribute }).
			Says("what is looked at: ip, origin, or any attribute of a call, such as header:X-Tenant").Otherwise("ip"),
		rule.FieldOf("allow", func(r *Rule) *rule.Strings { return &r.Allow }).Given("attribute").
			Says("who may call, and nobody else: addresses and prefixes, or for other attributes texts and patterns").
			Otherwise("everybody"),
		rule.FieldOf("deny", func(r *Rule) *rule.Strings { return &r.Deny }).Given("attribute").
			Says("who may not call, even if allowed: as in allow").Otherwise("nobody"),
		rule.FieldOf("list", func(r *Rule) *string { return &r.List }).
			Says("the name of a list that has such entries, up to ten million; it is loaded on its own").Otherwise("none"),
		rule.ChoiceField("listAction", func(r *Rule) *Action { return &r.ListAction }, Deny, Allow).Given("list").
			Says("what the entries of the list mean: deny or allow").Otherwise("deny"),
		rule.ChoiceField("missing", func(r *Rule) *rule.Missing { return &r.Missing }, rule.MissingPass, rule.MissingBlock).Given("allow", "listAction").
			Says("what happens to a call without the attribute").Otherwise("block if anything is allowed, else pass"),
	}
}

// examples are rules that have every field between them.
func examples() []rule.Example[Rule] {
	return []rule.Example[Rule]{{
		About: "The administration is for the company's network, but not for its guests.",
		Rule: Rule{
			Name: "admin-network", Match: "admin:*",
			Allow: rule.StringsOf("10.0.0.0/8", "2001:db8:1::/48"), Deny: rule.StringsOf("10.9.0.0/16"),
		},
		Fields: []string{"name", "match", "perResource", "allow", "deny", "missing", "shadow"},
	}, {
		About:  "Nobody on the list of scrapers may call anything.",
		Rule:   Rule{Name: "no-scrapers", Match: "*", Except: rule.StringsOf("robots.txt"), List: "scrapers"},
		Fields: []string{"name", "match", "except", "attribute", "list", "listAction"},
	}, {
		About: "Test clients may not pay.",
		Rule: Rule{
			Name: "no-tests", Resource: "pay:charge", Attribute: "header:X-Client",
			Deny: rule.StringsOf("test-*"), Origin: "mobile",
		},
		Fields: []string{"name", "resource", "attribute", "deny", "origin"},
	}}
}

func withDefaults(r *Rule) {
	r.Attribute = cmp.Or(r.Attribute, IP)
	if r.List != "" {
		r.ListAction = cmp.Or(r.ListAction, Deny)
	}
	if r.allowsOnly() {
		r.Missing = cmp.Or(r.Missing, rule.MissingBlock)
	}
	r.Missing = cmp.Or(r.Missing, rule.MissingPass)
}

func validate(r *Rule) []rule.Fault {
	var f rule.Faults
	if (r.Allow == rule.Strings{} && r.Deny == rule.Strings{} && r.List == "") {
		f.Add("deny", "is missing, and so are allow and list: write who may not call, or who may")
	}
	validateEntries(&f, "allow", r, r.Allow)
	validateEntries(&f, "deny", r, r.Deny)
	if r.List != "" {
		if err := list.CheckName(r.List); err != nil {
			f.Add("list", "is no name of a list: %s", strings.TrimPrefix(err.Error(), "list: "))
		}
	}
	switch {
	case r.ListAction != "" && r.List == "":
		f.Add("listAction", "has no effect without list: remove it or name a list")
	case r.List != "" && r.ListAction != Deny && r.ListAction != Allow:
		f.Add("listAction", "is %q: must be %q or %q", r.ListAction, Deny, Allow)
	}
	if r.Missing != rule.MissingPass && r.Missing != rule.MissingBlock {
		f.Add("missing", "is %q: must be %q or %q", r.Missing, rule.MissingPass, rule.MissingBlock)
	}
	return f
}

func validateEntries(f *rule.Faults, field string, r *Rule, entries rule.Strings) {
	if count := entries.Len(); count > maxEntries {
		f.Add(field, "has %d entries: must have at most %d; put them in a list and name that in list", count, maxEntries)
		return
	}
	given := make(map[string]bool)
	for entry := range entries.All() {
		switch fault := entryFault(r.Attribute, entry); {
		case fault != "":
			f.Add(field, "has a mistake: %s", fault)
		case given[entry]:
			f.Add(field, "has %s twice: remove one", rule.Quote(entry))
		}
		given[entry] = true
	}
}

// entryFault returns what is wrong with an entry, "" if it is sound.
func entryFault(attribute, entry string) string {
	if attribute == IP {
		if err := list.CheckAddr(entry); err != nil {
			return err.Error()
		}
		return ""
	}
	if !match.IsPattern(entry) {
		return "" // names are checked like other texts
	}
	_, err := match.Compile(entry)
	if mistake := (*match.Error)(nil); errors.As(err, &mistake) {
		return "the pattern " + mistake.Fault()
	}
	return ""
}
