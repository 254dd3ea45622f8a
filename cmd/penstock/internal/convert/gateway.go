package convert

import (
	"math"
	"regexp"
	"strings"
	"time"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// What all gateway rules do differently.
const (
	noteGateway = "gateway rules: in Sentinel a resource is a route or a group of paths of the gateway; here it is what the program or an " +
		"adapter calls it: change resource, or write match"
	noteAddress = "gateway rules: the client is the peer, unless the options of the adapter name trusted proxies; all addresses of an IPv6 " +
		"network are one client here (IPv6Prefix)"
	noteHost = "gateway rules: the attribute host is in lower case and has no port; header:Host is as the client sends it"
)

// convertGateway converts a GatewayFlowRule of Sentinel for Java. Missing fields have the
// values of a new GatewayFlowRule. Sentinel makes a rule for hot parameters of it.
func convertGateway(o *object, to *batch) {
	r := hotRule{
		field: "count", threshold: math.Floor(o.number("count", 0)), interval: gatewayInterval(o),
		throttle: o.whole("controlBehavior", 0) == 2, maxWait: milliseconds(o.whole("maxQueueingTimeoutMs", 500)),
		extra: o.whole("burst", 0),
	}
	r.concurrency = readGrade(o, "grade", 1)
	dropCluster(o)
	if mode := o.whole("resourceMode", 0); mode > 1 {
		o.unknown("resourceMode")
	}
	o.note(noteGateway)
	if e := o.find("paramItem"); e != nil {
		item := o.within(e.node)
		r.readParamItem(o, item)
		format{"Sentinel for Java", "paramItems", "", []string{"index", "parseStrategy", "fieldName", "pattern", "matchStrategy"}, nil, false}.
			reportUnknownFields(item)
		o.findings = append(o.findings, item.findings...)
		o.dropped = o.dropped || item.dropped
		r.convert(o, to)
		return
	}
	r.convertWhole(o, to)
}

// gatewayInterval reads the time of the threshold. The dashboard writes it with a unit.
func gatewayInterval(o *object) time.Duration {
	if !o.has("interval") || !o.has("intervalUnit") {
		return seconds(o.positive("intervalSec", 1))
	}
	unit, units := o.whole("intervalUnit", 0), []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour}
	if unit >= len(units) {
		o.unknown("intervalUnit")
		return 0
	}
	if n := o.positive("interval", 0); n <= int(math.MaxInt64/units[unit]) {
		return time.Duration(n) * units[unit]
	}
	return math.MaxInt64
}

// readParamItem reads which part of a request the rule looks at.
func (r *hotRule) readParamItem(o, item *object) {
	name, named := item.text("fieldName"), ""
	switch item.whole("parseStrategy", 0) {
	case 0:
		r.param = "ip"
		o.note(noteAddress)
	case 1:
		r.param = "host"
		o.note(noteHost)
	case 2:
		named = "header:"
	case 3:
		named = "query:"
	case 4:
		named = "cookie:"
	default:
		item.unknown("parseStrategy")
	}
	if named != "" {
		if r.param = named + name; name == "" {
			item.drop(item.offset, "Sentinel ignores a rule for a header, a URL parameter or a cookie without fieldName: name it")
		}
	}
	pattern := item.text("pattern")
	if pattern != "" && !item.dropped {
		r.restrict(item, pattern)
	}
	if r.param == "ip" && strings.Contains(pattern, ":") {
		item.differ(item.at("pattern"), "an IPv6 client is its network here, such as 2001:db8:1:2::/64, and is never like %s: change the pattern",
			wording.Quote(pattern))
	}
	if r.param == "host" && (strings.Contains(pattern, ":") || strings.ToLower(pattern) != pattern) {
		item.differ(item.at("pattern"), "no host is like %s here, in lower case and without port: change the pattern, or write param: header:Host",
			wording.Quote(pattern))
	}
}

// restrict makes the rule one for the values that match.
func (r *hotRule) restrict(item *object, pattern string) {
	var key rule.Attribute
	switch item.whole("matchStrategy", 0) {
	case 0:
		key = textKey(pattern)
	case 1:
		key = rule.String(literal(pattern) + "*")
		item.differ(item.at("matchStrategy"), "Sentinel ignores a pattern with matchStrategy 1 (prefix) and limits every value; here only "+
			"values that begin with %s have the limit. To limit every value, set limit and remove values", wording.Quote(pattern))
	case 2:
		match, expression := javaPattern(pattern)
		if _, err := regexp.Compile(expression); err != nil {
			item.drop(item.at("pattern"), "the pattern %s is no regular expression of Go: write another one", wording.Quote(pattern))
		}
		key = rule.String(match)
	case 3:
		key = rule.String("*" + literal(pattern) + "*")
	default:
		item.unknown("matchStrategy")
		return
	}
	r.unlisted = true
	r.items = []hotItem{{key, r.threshold}}
}

// convertWhole adds the rule of one without a paramItem, which all calls share.
func (r hotRule) convertWhole(o *object, to *batch) {
	if r.concurrency {
		flowRule{threshold: limit{r.field, r.threshold}}.convertConcurrency(o, to)
		return
	}
	if o.dropped {
		return
	}
	made := flow.Rule{Resource: o.resource, Limit: r.threshold, Window: r.interval}
	if r.throttle {
		made.Algorithm, made.MaxWait = flow.Throttle, r.maxWait
		o.note(noteSpacing)
	} else {
		made.Algorithm = flow.TokenBucket
		if r.extra > 0 && r.threshold > 0 {
			made.Burst = r.threshold + float64(r.extra)
		}
		o.note(noteRefill)
	}
	to.flow = append(to.flow, converted[flow.Rule]{made, o.source("")})
}
