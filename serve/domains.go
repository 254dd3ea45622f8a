package serve

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// domainOf returns what is said of a domain, false if it is not served. If nothing is said of any, all
// are served.
func domainOf(engine *core.Engine, name string) (domain rules.Domain, served bool) {
	domains := engine.Domains()
	if domains == nil {
		return rules.Domain{Name: name}.WithDefaults(), true
	}
	domain, served = domains[name]
	return domain, served
}

// Unreached returns the rules of a set that requests of a [RLS] or [RLQS] do not reach by what the set
// says of domains, as [rules.Problems] with their places; nil if there are none: rules for a resource
// that no request is, and rules that look at an attribute which no request shows. They are no mistakes
// in a server that has other services, or a program beside it. custom are as for [Check].
func Unreached(set rules.Set, custom ...rule.Definition) error {
	if len(set.Serve) == 0 {
		return nil
	}
	return check(set, func(r rule.Rule) string { return unreached(r, set.Serve) }, custom)
}

// unreached says why requests of domains do not reach a rule, "" if they do.
func unreached(r rule.Rule, domains []rules.Domain) string {
	var of []rules.Domain
	for _, d := range domains {
		if resource := r.Target().Resource; resource == "" || mayBe(d.WithDefaults(), resource) {
			of = append(of, d)
		}
	}
	if of == nil {
		return fmt.Sprintf("is not reached by requests of proxies: by what serve says, none is of the resource %s", rule.Quote(r.Target().Resource))
	}
	for _, key := range r.Attributes() {
		if !slices.ContainsFunc(of, func(d rules.Domain) bool { return shows(&d, key) }) {
			return fmt.Sprintf("is not reached by requests of proxies: serve does not show the attribute %s: add it there", rule.Quote(key))
		}
	}
	return ""
}

// mayBe says whether requests of a domain can be a resource.
func mayBe(d rules.Domain, resource string) bool {
	var pattern strings.Builder
	rest, more := d.Resource, true
	for more {
		var text string
		text, rest, more = strings.Cut(rest, "{")
		pattern.WriteString(regexp.QuoteMeta(text))
		if more {
			_, rest, _ = strings.Cut(rest, "}")
			pattern.WriteString(".+")
		}
	}
	return regexp.MustCompile("(?s)^" + pattern.String() + "$").MatchString(resource)
}

// shows says whether rules can see an attribute of requests of a domain, if these have it.
func shows(d *rules.Domain, key string) bool {
	switch key {
	case rule.KeyIP, rule.KeyIPPrefix:
		return showsAddress(d)
	case rule.KeyOrigin:
		return true
	}
	return d.Sees(key)
}

// showsAddress says whether rules can see the address of the client.
func showsAddress(d *rules.Domain) bool {
	return d.Sees(remoteAddressKey) || d.Sees(rule.KeyIP) || d.Sees(rule.KeyIPPrefix)
}
