package convert

import (
	"slices"
	"strings"

	"github.com/penstock-go/penstock/access"
	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/rule"
)

// convertAuthority converts an AuthorityRule of Sentinel for Java. It says which origins
// may call; calls without an origin pass.
func convertAuthority(o *object, to *batch) {
	r := access.Rule{Resource: o.resource, Attribute: rule.KeyOrigin}
	pattern := ""
	if o.flag("regex") {
		r.Match, pattern = javaPattern(o.resource)
		r.Resource = ""
	}
	origins := authorityOrigins(o)
	switch o.whole("strategy", 0) {
	case 0:
		r.Allow, r.Missing = origins, rule.MissingPass
	case 1:
		r.Deny = origins
	default:
		o.unknown("strategy")
	}
	if slices.ContainsFunc(to.access, func(other converted[access.Rule]) bool { return other.resource == o.resource }) {
		o.drop(o.offset, "Sentinel ignores all authority rules of a resource but the first: remove it")
	}
	if !o.dropped {
		to.access = append(to.access, converted[access.Rule]{r, o.source(pattern)})
	}
}

// authorityOrigins reads the names in limitApp as entries of an access rule.
func authorityOrigins(o *object) rule.Strings {
	var origins []string
	text := o.text("limitApp")
	for name := range strings.SplitSeq(text, ",") {
		trimmed := strings.TrimSpace(name)
		if trimmed != name && trimmed != "" {
			o.differ(o.at("limitApp"), "Sentinel compares %s with its blanks; here it is %s", wording.Quote(name), wording.Quote(trimmed))
		}
		if entry := literal(trimmed); entry != "" && !slices.Contains(origins, entry) {
			origins = append(origins, entry)
		}
	}
	if len(origins) == 0 {
		o.drop(o.at("limitApp"), "limitApp is %s and names nobody: name the callers, or remove the rule", wording.Quote(text))
	}
	return rule.StringsOf(origins...)
}
