package convert

import (
	"slices"
	"strings"
)

// usual is the format that the rules of a file have whose limits are in a field, by the name
// of the field. A rule that does not tell its format has that of the others.
type usual map[string]format

// judge looks at all rules of a file. What a field means that is missing depends on the format
// of the rule: without metricType a rule of sentinel-golang 0 limits the calls under way, one
// of Java the calls in a second.
func judge(objects []*object) usual {
	told, guessed := make(map[string][]format), make(map[string][]format)
	for _, o := range objects {
		if o.dropped || isSystem(o) || isAuthority(o) {
			continue
		}
		switch f := formatOf(o); {
		case !o.isVague():
			told[f.limit] = append(told[f.limit], f)
		case o.has("metricType"):
			guessed[f.limit] = append(guessed[f.limit], f)
		}
	}
	of := make(usual)
	for _, limit := range []string{"count", "threshold"} {
		all := told[limit]
		if len(all) == 0 {
			all = guessed[limit]
		}
		different := func(f format) bool { return f.name != all[0].name || f.kind != all[0].kind }
		if len(all) > 0 && all[0].plain && !slices.ContainsFunc(all, different) {
			of[limit] = all[0]
		}
	}
	return of
}

// formatOf returns the format of a rule beside the others of its file.
func (u usual) formatOf(o *object) format {
	own := formatOf(o)
	if other, known := u[own.limit]; known && o.isVague() && o.has(own.limit) {
		return other
	}
	return own
}

// isVague says whether a rule has only fields that rules of several formats have.
func (o *object) isVague() bool {
	common := append(meaningless(), "resource", "count", "threshold", "metricType", "controlBehavior", "relationStrategy", "refResource",
		"maxQueueingTimeMs", "warmUpPeriodSec")
	return !slices.ContainsFunc(o.entries, func(e entry) bool {
		return !slices.ContainsFunc(common, func(name string) bool { return strings.EqualFold(name, e.name()) })
	})
}
