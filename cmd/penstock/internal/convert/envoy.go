package convert

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// What all rules of Envoy's rate limit service do differently.
const (
	noteEnvoyResource = "Envoy: rules are for what is sent with the domain; here they are for a resource, which penstock serve takes all that is " +
		"sent with the domain for, as serve says; in a program change resource to what that or an adapter calls it, and give calls the keys of " +
		"the descriptors as attributes"
	noteEnvoyFleet  = "Envoy: a limit is for all instances together; here each instance has it: add scope: fleet where the program has a backend"
	noteEnvoyWindow = "Envoy: counters begin anew with each second, minute, hour or day, so that twice the limit may pass around that; here the " +
		"window slides, and never has more than the limit"
	noteEnvoyDepth = "Envoy: only the descriptor counts that a request has in full; here a call that has the keys of several is under the limits " +
		"of all of them"
)

// convertEnvoy converts a configuration of Envoy's rate limit service.
func convertEnvoy(documents []node) (converted batch, findings []Finding) {
	for _, document := range documents {
		o := plainObject(document)
		o.resource = o.text("domain")
		c := envoyFile{to: &converted, root: o, groups: map[string]*envoyGroup{}, limits: map[string]int{}}
		if o.resource == "" {
			o.drop(o.offset, "the domain is missing: it is the name of the rules")
		}
		c.descriptors(o, nil)
		o.reportOthers("domain", "descriptors")
		c.write()
		findings = append(findings, o.findings...)
	}
	return converted, findings
}

// envoyFile is a configuration that is being converted.
type envoyFile struct {
	to     *batch
	root   *object
	groups map[string]*envoyGroup
	order  []*envoyGroup
	limits map[string]int // how many each descriptor has
}

// envoyGroup is the descriptors with the same keys: which of them is for a call depends on
// all of them.
type envoyGroup struct {
	keys   []string
	limits []envoyLimit
}

// envoyLimit is a descriptor with a limit.
type envoyLimit struct {
	path      []envoyKey
	limit     float64
	unlimited bool
	window    time.Duration
	shadow    bool
	offset    int
}

// envoyKey is a key of a descriptor, and the value that it is for; all for "".
type envoyKey struct{ key, value string }

// id is the same for descriptors that are for the same calls.
func (l envoyLimit) id() string { return fmt.Sprintf("%q", l.path) }

// descriptors reads the descriptors in an object, below those of a path.
func (c *envoyFile) descriptors(of *object, above []envoyKey) {
	for _, d := range of.items("descriptors") {
		d.resource = c.root.resource
		path := append(slices.Clone(above), envoyKey{d.text("key"), envoyValue(d)})
		switch {
		case path[len(path)-1].key == "":
			d.drop(d.offset, "the key of the descriptor is missing")
		case len(path) > rule.MaxKeys:
			d.drop(d.offset, "the descriptor has more than %d keys, which no rule here can look at", rule.MaxKeys)
		case d.has("rate_limit"):
			d.dropOthers("key", "value", "rate_limit", "descriptors", "shadow_mode", "quota_mode", "detailed_metric", "value_to_metric")
			c.limit(d, path)
		}
		if !d.dropped {
			c.descriptors(d, path)
		}
		c.root.findings = append(c.root.findings, d.findings...)
	}
}

// envoyValue returns the value of a descriptor, which YAML may take for a number.
func envoyValue(d *object) string {
	e := d.find("value")
	if e == nil {
		return ""
	}
	value, ok := scalarText(e.node)
	if !ok {
		d.mistype(e, "text")
	}
	return value
}

const day = 24 * time.Hour

// limit reads the limit of a descriptor.
func (c *envoyFile) limit(d *object, path []envoyKey) {
	e := d.find("rate_limit")
	of := d.within(e.node)
	l := envoyLimit{path: path, offset: d.offset, unlimited: of.flag("unlimited"), shadow: d.flag("shadow_mode") || d.flag("quota_mode"), window: time.Second}
	if !l.unlimited {
		switch unit := strings.ToLower(of.text("unit")); unit {
		case "second":
		case "minute":
			l.window = time.Minute
		case "hour":
			l.window = time.Hour
		case "day":
			l.window = day
		case "week":
			l.window = 7 * day
		case "month": // of 30 days, counted from 1970 on, whatever the calendar says
			l.window = 30 * day
		case "year":
			l.window = 365 * day
		default:
			of.drop(of.at("unit"), "the unit is %s: must be second, minute, hour, day, week, month or year", wording.Quote(unit))
		}
		if l.limit = float64(of.whole("requests_per_unit", 0)); !of.has("requests_per_unit") {
			of.drop(of.offset, "requests_per_unit is missing: write how many may pass, 0 to block all")
		}
	}
	if of.has("replaces") {
		of.add(LeftOut, of.at("replaces"), "replaces: no rule here takes the place of another; remove that other")
	}
	of.dropOthers("unit", "requests_per_unit", "unlimited", "name", "replaces")
	if c.limits[l.id()]++; c.limits[l.id()] > 1 {
		of.drop(d.offset, "the descriptor is given twice, which Envoy's service refuses: remove one")
	}
	d.findings = append(d.findings, of.findings...)
	if of.dropped || d.dropped {
		return
	}
	var keys []string
	for _, key := range path {
		keys = append(keys, key.key)
	}
	id := strings.Join(keys, "\x00")
	group := c.groups[id]
	if group == nil {
		group = &envoyGroup{keys: keys}
		c.groups[id] = group
		c.order = append(c.order, group)
	}
	group.limits = append(group.limits, l)
}

// write adds a rule for each window that the limits of a group have.
func (c *envoyFile) write() {
	if c.root.dropped {
		return
	}
	if of := (rules.Domain{Name: c.root.resource, Resource: c.root.resource}); len(c.order) > 0 && of.Validate() == nil {
		c.to.serve = append(c.to.serve, of)
	}
	for _, group := range c.order {
		group.limits = slices.DeleteFunc(group.limits, func(l envoyLimit) bool { return c.limits[l.id()] > 1 })
		// What is for a value comes before what is for all.
		slices.SortStableFunc(group.limits, func(a, b envoyLimit) int { return cmp.Compare(a.wild(), b.wild()) })
		var written []envoyLimit
		for _, l := range group.limits {
			same := func(other envoyLimit) bool { return other.window == l.window && other.shadow == l.shadow }
			if !l.unlimited && !slices.ContainsFunc(written, same) {
				written = append(written, l)
				c.writeWindow(group, l)
			}
		}
		if len(written) == 0 && len(group.limits) > 0 {
			c.root.differ(group.limits[0].offset, "unlimited: in Envoy requests with these keys are under no limit; here they are "+
				"under those for some of the keys: give what sends them another resource")
		}
	}
}

// writeWindow adds the rule of the limits that have the window of one of them. Values with
// another window, or without a limit, have none in it.
func (c *envoyFile) writeWindow(group *envoyGroup, of envoyLimit) {
	c.root.notes = []string{noteEnvoyResource, noteEnvoyFleet}
	if of.window <= day {
		c.root.note(noteEnvoyWindow)
	}
	if len(c.order) > 1 {
		c.root.note(noteEnvoyDepth)
	}
	made := hotparam.Rule{
		Resource: c.root.resource, Param: rule.StringsOf(group.keys...), Limit: hotparam.MaxLimit, Window: of.window,
		Algorithm: hotparam.SlidingWindow, Shadow: of.shadow,
	}
	if of.window > day { // its windows are those of Envoy
		made.Window, made.Algorithm = 0, hotparam.FixedWindow
		made.Calendar = rule.Calendar{Period: rule.Period{Count: int(of.window / day), Unit: rule.Day}, StartsAt: "1970-01-01"}
	}
	var values []rule.NumberEntry
	for _, l := range group.limits {
		limit := l.limit
		if l.unlimited || l.window != of.window || l.shadow != of.shadow {
			limit = hotparam.MaxLimit
		}
		if l.wild() == len(l.path) {
			made.Limit = limit
			continue
		}
		values = append(values, rule.NumberEntry{Key: l.value(), Value: limit})
	}
	made.Values = rule.NumberMapOf(values...)
	source := c.root.source("")
	source.offset = of.offset
	c.to.hotParam = append(c.to.hotParam, converted[hotparam.Rule]{made, source})
}

// wild returns how many keys are for all values.
func (l envoyLimit) wild() (count int) {
	for _, key := range l.path {
		if key.value == "" {
			count++
		}
	}
	return count
}

// value returns the values that a limit is for, as a key of values.
func (l envoyLimit) value() rule.Attribute {
	var parts []string
	for _, key := range l.path {
		part := "**"
		switch prefix, wild := strings.CutSuffix(key.value, "*"); {
		case key.value == "":
		case wild:
			part = literal(prefix) + "**"
		default:
			part = literal(key.value)
		}
		if len(l.path) > 1 {
			part = strings.ReplaceAll(part, "/", `\/`)
		}
		parts = append(parts, part)
	}
	return rule.String(strings.Join(parts, "/"))
}
