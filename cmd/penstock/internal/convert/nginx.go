package convert

import (
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
)

// What all rules of nginx do differently.
const (
	noteNginxResource = "nginx: a limit is for a location, a server or all of them; here it is for a resource: change resource to what the " +
		"program or an adapter calls it, or write match"
	noteNginxStatus = "nginx: a refused request is answered with 503 unless limit_req_status or limit_conn_status say otherwise; here with 429"
	noteNginxBurst  = "nginx: without nodelay, requests within the burst wait their turn, and here, too; the longest wait is the time that the " +
		"burst takes"
	noteNginxAddress = "nginx: each address is a client; here all addresses of an IPv6 network are one (IPv6Prefix), and the client is the peer " +
		"unless the options of the adapter name trusted proxies"
)

// nginxZone is a zone: what requests are counted by, and how many may pass.
type nginxZone struct {
	keys   []string // attributes; none for all requests together
	server bool     // each server has its own counters
	fault  string   // why the key or the rate is not understood
	limit  float64
	window time.Duration
	used   int
}

// nginxFile is a configuration that is being converted.
type nginxFile struct {
	to       *batch
	requests map[string]*nginxZone // by name
	conns    map[string]*nginxZone
	findings []Finding
}

// convertNginx converts the limit_req and limit_conn lines of a configuration of nginx.
func convertNginx(data []byte) (converted batch, findings []Finding) {
	directives, offset, err := parseNginx(data)
	if err != nil {
		return batch{}, unreadable(offset, "the file cannot be read as a configuration of nginx: %v", err)
	}
	f := nginxFile{to: &converted, requests: map[string]*nginxZone{}, conns: map[string]*nginxZone{}}
	for _, d := range directives {
		switch d.name() {
		case "limit_req_zone":
			f.zone(d, f.requests, true)
		case "limit_conn_zone":
			f.zone(d, f.conns, false)
		}
	}
	for _, d := range directives {
		switch d.name() {
		case "limit_req":
			f.limitRequests(d)
		case "limit_conn":
			f.limitConnections(d)
		case "include":
			f.include(d)
		}
	}
	return converted, f.findings
}

// include says that a file is not read, unless it is one that comes with nginx and has no limits.
func (f *nginxFile) include(d nginxDirective) {
	if len(d.words) < 2 {
		return
	}
	switch path.Base(d.words[1]) {
	case "mime.types", "fastcgi_params", "fastcgi.conf", "uwsgi_params", "scgi_params", "proxy_params", "koi-utf", "koi-win", "win-utf":
		return
	}
	f.add(Differs, d, "include: %s is not read: give convert that file, too, or what nginx -T prints", wording.Quote(d.words[1]))
}

// add reports what becomes of a directive.
func (f *nginxFile) add(kind Kind, d nginxDirective, format string, args ...any) {
	f.findings = append(f.findings, Finding{Kind: kind, offset: d.offset, Resource: d.resource(), Message: fmt.Sprintf(format, args...)})
}

// zone reads limit_req_zone or limit_conn_zone.
func (f *nginxFile) zone(d nginxDirective, zones map[string]*nginxZone, rated bool) {
	z := &nginxZone{}
	if len(d.words) < 2 {
		return
	}
	z.keys, z.fault = nginxKey(d.words[1])
	z.server = nginxServer.MatchString(d.words[1])
	name, rate := "", ""
	for _, word := range d.words[2:] {
		if value, ok := strings.CutPrefix(word, "zone="); ok {
			name, _, _ = strings.Cut(value, ":")
		}
		if value, ok := strings.CutPrefix(word, "rate="); ok {
			rate = value
		}
	}
	if rated && z.fault == "" {
		z.limit, z.window, z.fault = nginxRate(rate)
	}
	if zones[name] != nil {
		z.fault = fmt.Sprintf("the zone %s is given twice, which nginx refuses: remove one", wording.Quote(name))
	}
	zones[name] = z
}

// nginxRate reads a rate such as 10r/s.
func nginxRate(rate string) (limit float64, window time.Duration, fault string) {
	number, perSecond := strings.CutSuffix(rate, "r/s")
	window = time.Second
	if !perSecond {
		window = time.Minute
		var perMinute bool
		if number, perMinute = strings.CutSuffix(rate, "r/m"); !perMinute {
			return 0, 0, fmt.Sprintf("the rate is %s: must be a number of requests, as in 10r/s or 30r/m", wording.Quote(rate))
		}
	}
	n, err := strconv.ParseUint(number, 10, 31)
	if err != nil || n == 0 {
		return 0, 0, fmt.Sprintf("the rate is %s: must be a number of requests, as in 10r/s or 30r/m", wording.Quote(rate))
	}
	return float64(n), window, ""
}

// nginxServer matches a key in which the name of the server is.
var nginxServer = regexp.MustCompile(`\$(server_name\b|\{server_name\})`)

// keysFor returns the attributes by which a zone counts where a directive stands. The name of the server is the
// same for all requests within one.
func (z *nginxZone) keysFor(d nginxDirective) []string {
	isWithin := slices.ContainsFunc(d.around, func(b *nginxBlock) bool { return b.words[0] == "server" })
	if !z.server || isWithin || slices.Contains(z.keys, "host") || len(z.keys) == rule.MaxKeys {
		return z.keys
	}
	return slices.Sorted(slices.Values(append(slices.Clone(z.keys), "host")))
}

// nginxKey returns the attributes that the key of a zone is made of.
func nginxKey(key string) (keys []string, fault string) {
	rest := regexp.MustCompile(`\$\{(\w+)\}`).ReplaceAllString(key, `$$$1 `)
	variables := regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(rest, -1)
	for _, variable := range variables {
		switch name := variable[1]; {
		case name == "binary_remote_addr" || name == "remote_addr":
			keys = append(keys, "ip")
		case name == "host" || name == "http_host":
			keys = append(keys, "host")
		case name == "server_name": // the same for all requests of a server
		case strings.HasPrefix(name, "http_"):
			keys = append(keys, "header:"+strings.ReplaceAll(strings.TrimPrefix(name, "http_"), "_", "-"))
		case strings.HasPrefix(name, "arg_"):
			keys = append(keys, "query:"+strings.TrimPrefix(name, "arg_"))
		case strings.HasPrefix(name, "cookie_"):
			keys = append(keys, "cookie:"+strings.TrimPrefix(name, "cookie_"))
		default:
			return nil, fmt.Sprintf("the key of its zone is %s: no attribute here is $%s; write a rule with an attribute that the program gives",
				wording.Quote(key), name)
		}
	}
	slices.Sort(keys)
	if keys = slices.Compact(keys); len(keys) > rule.MaxKeys {
		return nil, fmt.Sprintf("the key of its zone is %s: it has more than %d parts", wording.Quote(key), rule.MaxKeys)
	}
	return keys, ""
}

// find returns the zone of a directive, unless it is not understood.
func (f *nginxFile) find(d nginxDirective, name string, zones map[string]*nginxZone) *nginxZone {
	z := zones[name]
	switch {
	case z == nil:
		f.add(LeftOut, d, "the zone %s is not in this file: convert both together", wording.Quote(name))
		return nil
	case z.fault != "":
		f.add(LeftOut, d, "%s", z.fault)
		return nil
	}
	if z.used++; z.used == 2 {
		f.add(Differs, d, "all places with the zone %s share its counters in nginx; here each has its own: give them one resource, "+
			"or a match with perResource: false", wording.Quote(name))
	}
	return z
}

// limitRequests converts limit_req.
func (f *nginxFile) limitRequests(d nginxDirective) {
	name, burst, atOnce := "", 0.0, 0.0 // atOnce: of the burst, those that do not wait
	for _, word := range d.words[1:] {
		option, value, _ := strings.Cut(word, "=")
		switch option {
		case "zone":
			name = value
		case "burst", "delay":
			n, err := strconv.ParseUint(value, 10, 31)
			if err != nil {
				f.add(LeftOut, d, "the %s is %s: must be a whole number", option, wording.Quote(value))
				return
			}
			if option == "burst" {
				burst = float64(n)
			} else {
				atOnce = float64(n)
			}
		case "nodelay":
			atOnce = math.Inf(1)
		default:
			f.add(LeftOut, d, "limit_req has no option %s", wording.Quote(word))
			return
		}
	}
	z := f.find(d, name, f.requests)
	if z == nil {
		return
	}
	wait := time.Duration(0)
	switch {
	case atOnce >= burst:
	case atOnce > 0:
		f.add(Differs, d, "delay=%v: in nginx the requests of the burst beyond that wait; here they pass at once", atOnce)
	default:
		wait = time.Duration(burst / z.limit * float64(z.window))
	}
	f.writeRate(d, z, burst, wait)
}

// writeRate adds the rule of limit_req: calls that wait are spaced, others take from a bucket
// that holds the burst and one more.
func (f *nginxFile) writeRate(d nginxDirective, z *nginxZone, burst float64, wait time.Duration) {
	keys := z.keysFor(d)
	from := d.source(keys)
	if wait > 0 {
		from.notes = append(from.notes, noteNginxBurst)
	}
	if len(keys) == 0 {
		made := flow.Rule{Resource: d.resource(), Limit: z.limit, Window: z.window, Shadow: d.isDryRun()}
		if made.Algorithm, made.MaxWait = flow.Throttle, wait; wait == 0 {
			made.Algorithm, made.Burst = flow.TokenBucket, burst+1
		}
		f.to.flow = append(f.to.flow, converted[flow.Rule]{made, from})
		return
	}
	made := hotparam.Rule{Resource: d.resource(), Param: rule.StringsOf(keys...), Limit: z.limit, Window: z.window, Shadow: d.isDryRun()}
	if made.Algorithm, made.MaxWait = hotparam.Throttle, wait; wait == 0 {
		made.Algorithm, made.Burst = hotparam.TokenBucket, burst+1
	}
	f.to.hotParam = append(f.to.hotParam, converted[hotparam.Rule]{made, from})
}

// limitConnections converts limit_conn.
func (f *nginxFile) limitConnections(d nginxDirective) {
	if len(d.words) != 3 {
		f.add(LeftOut, d, "limit_conn has a zone and a number")
		return
	}
	n, err := strconv.ParseUint(d.words[2], 10, 31)
	if err != nil || n == 0 {
		f.add(LeftOut, d, "the number is %s: must be a whole number from 1", wording.Quote(d.words[2]))
		return
	}
	z := f.find(d, d.words[1], f.conns)
	if z == nil {
		return
	}
	keys := z.keysFor(d)
	from := d.source(keys)
	if len(keys) == 0 {
		made := isolation.Rule{Resource: d.resource(), Limit: int(n), Shadow: d.isDryRun()}
		f.to.isolation = append(f.to.isolation, converted[isolation.Rule]{made, from})
		return
	}
	made := hotparam.Rule{Resource: d.resource(), Param: rule.StringsOf(keys...), Concurrency: int(n), Shadow: d.isDryRun()}
	f.to.hotParam = append(f.to.hotParam, converted[hotparam.Rule]{made, from})
}
