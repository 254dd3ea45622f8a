package simulate_test

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/simulate"
)

// The oracle decides on calls by the textbook: each algorithm is written anew
// from its formula, as plainly as can be, on whole nanoseconds. It shares no
// code with what it judges.

// offer is a call as the oracle sees it.
type offer struct {
	at       int64 // nanoseconds
	resource string
	origin   string
	tokens   int64
}

// verdict is what becomes of it.
type verdict struct {
	passed bool
	wait   int64 // nanoseconds until that was clear
	rule   string
}

// counter is a window: it has room for tokens or not.
type counter interface {
	hasRoom(now, tokens int64) bool
	count(now, tokens int64)
}

// pacer is a bucket or a throttle: the next call's turn is at an instant.
type pacer interface {
	turn(since, tokens int64) (at int64, ever bool) // of a call that is next since an instant
	grant(turn, tokens int64)
	clone() pacer
}

// oracle runs calls through rules.
type oracle struct {
	rules    []flow.Rule // complete
	counters map[string]counter
	lines    map[string]*oracleLine
	verdicts []verdict
	offers   []offer
}

// oracleLine is a pacer and those who wait for it, first come, first served.
type oracleLine struct {
	rule     flow.Rule
	pacer    pacer
	waiting  []*oracleCall
	since    int64 // when the first became the first
	expected int64 // when the first is expected to go, if it waits in another line, too
}

type oracleCall struct {
	offer
	index    int
	deadline int64
	places   []*oracleLine // that it has joined, in their order
	lines    int           // how many it has to join
	ready    int           // in so many of them its turn has come
	taken    []grant       // turns that were granted
}

type grant struct {
	line   *oracleLine
	before pacer
}

// judge returns what becomes of the calls, which are in order of arrival.
func judge(rules []flow.Rule, offers []offer) []verdict {
	o := &oracle{counters: map[string]counter{}, lines: map[string]*oracleLine{}, offers: offers}
	for _, rule := range rules {
		o.rules = append(o.rules, rule.WithDefaults())
	}
	o.verdicts = make([]verdict, len(offers))
	for i, call := range offers {
		o.serveUntil(call.at)
		o.goOn(&oracleCall{offer: call, index: i}, call.at)
	}
	o.serveUntil(1 << 62)
	return o.verdicts
}

// serveUntil lets every turn that falls due by then be taken, in order; of those
// at the same instant, the one that was known first comes first.
func (o *oracle) serveUntil(end int64) {
	for {
		var waiting []*oracleLine
		for _, line := range o.lines {
			if len(line.waiting) > 0 && line.headTurn() <= end {
				waiting = append(waiting, line)
			}
		}
		tooLate := o.tooLate()
		if tooLate != nil && tooLate.deadline < end && !slices.ContainsFunc(waiting, func(l *oracleLine) bool {
			return l.headTurn() <= tooLate.deadline
		}) {
			o.refuse(tooLate, tooLate.deadline+1, tooLate.places[len(tooLate.places)-1].rule)
			continue
		}
		if len(waiting) == 0 {
			return
		}
		next := slices.MinFunc(waiting, func(a, b *oracleLine) int {
			return cmp.Or(
				cmp.Compare(a.headTurn(), b.headTurn()),
				cmp.Compare(max(a.since, a.waiting[0].at), max(b.since, b.waiting[0].at)),
				cmp.Compare(a.waiting[0].index, b.waiting[0].index),
			)
		})
		call, due := next.waiting[0], next.headTurn()
		call.ready++
		o.goOn(call, due)
	}
}

// tooLate returns the call, of those that are not the first where they wait for one
// of several turns, whose deadline is the earliest.
func (o *oracle) tooLate() (first *oracleCall) {
	if len(o.lines) < 2 {
		return nil
	}
	for _, line := range o.lines {
		for _, call := range line.waiting[min(1, len(line.waiting)):] {
			if call.lines > 1 && (first == nil || call.deadline < first.deadline) {
				first = call
			}
		}
	}
	return first
}

// headTurn returns when the turn of the first comes; never if it has come, and the
// call waits in another line.
func (l *oracleLine) headTurn() int64 {
	head := l.waiting[0]
	if head.places[len(head.places)-1] != l {
		return 1 << 62
	}
	at, _ := l.pacer.turn(max(l.since, head.at), head.tokens)
	return at
}

// goOn lets a call join the lines of its rules, one after the other, as long as its
// turn has come in those before; then it takes all turns at once.
func (o *oracle) goOn(call *oracleCall, now int64) {
	lines := o.linesOf(call)
	call.lines = len(lines)
	if len(call.places) == 0 && !o.mayWait(call, lines, now) {
		return
	}
	for _, line := range lines[len(call.places):] {
		turn, ever := line.turnOf(call, now)
		if !ever || turn > call.deadline {
			line.noteRefused(call)
			o.refuse(call, now, line.rule)
			return
		}
		if len(line.waiting) == 0 {
			line.since, line.expected = now, 0
		}
		line.waiting = append(line.waiting, call)
		call.places = append(call.places, line)
		if turn > now || line.waiting[0] != call {
			for _, held := range call.places[:call.ready] {
				held.expected = turn
			}
			return
		}
		call.ready++
	}
	for _, line := range lines {
		if at, _ := line.pacer.turn(max(line.since, call.at), call.tokens); at < now {
			line.pacer.turn(now, call.tokens)
		}
		call.taken = append(call.taken, grant{line: line, before: line.pacer.clone()})
		line.pacer.grant(now, call.tokens)
	}
	call.places = nil
	for _, line := range lines {
		o.leave(line, call, now)
	}
	if rule := o.fullAt(call, now, now); rule != nil {
		o.refuse(call, now, *rule)
		return
	}
	o.pass(call, now)
}

// noteRefused counts a call that is refused as load, where that warms.
func (l *oracleLine) noteRefused(call *oracleCall) {
	if warm, ok := l.pacer.(*warmThrottle); ok {
		warm.refused += float64(call.tokens)
	}
}

// mayWait refuses a call that comes now if one of its turns is too far off, or if a
// window would still be full then.
func (o *oracle) mayWait(call *oracleCall, lines []*oracleLine, now int64) bool {
	last := now
	call.deadline = 1 << 62
	for _, line := range lines {
		call.deadline = min(call.deadline, now+int64(line.rule.MaxWait))
	}
	for _, line := range lines {
		turn, ever := line.turnOf(call, now)
		if !ever || turn > call.deadline {
			line.noteRefused(call)
			o.refuse(call, now, line.rule)
			return false
		}
		last = max(last, turn)
	}
	if rule := o.fullAt(call, now, last); rule != nil {
		o.refuse(call, now, *rule)
		return false
	}
	return true
}

// fullAt returns the first window that is full now and, if nobody comes, later.
func (o *oracle) fullAt(call *oracleCall, now, later int64) *flow.Rule {
	for _, rule := range o.applying(call.offer) {
		if isPaced(rule) {
			continue
		}
		wanted := call.tokens
		if later > now && !rule.Shared && rule.Related == "" {
			wanted += o.promised(rule, call)
		}
		c := o.counter(rule, call.resource)
		if !c.hasRoom(now, wanted) && !c.hasRoom(later, wanted) && (wanted == call.tokens || !leaves(rule, now, later)) {
			return &rule
		}
	}
	return nil
}

// promised returns how many tokens of a window the calls of its resource will take
// that wait.
func (o *oracle) promised(rule flow.Rule, by *oracleCall) (tokens int64) {
	calls := map[*oracleCall]bool{}
	for _, line := range o.lines {
		for _, call := range line.waiting {
			if call.resource == by.resource && !calls[call] && slices.Contains(o.applying(call.offer), rule) {
				calls[call] = true
				tokens += call.tokens
			}
		}
	}
	return tokens
}

// leaves says whether what a window counts now may have left it later.
func leaves(rule flow.Rule, now, later int64) bool {
	parts := int64(max(1, rule.Buckets))
	bucket, span := int64(rule.Window)/parts, parts
	if rule.Strict {
		span++
	}
	return later/bucket >= now/bucket+span
}

// linesOf returns the lines that a call has to wait in, in their order: those for
// fewer calls come first.
func (o *oracle) linesOf(call *oracleCall) (lines []*oracleLine) {
	for _, rule := range o.applying(call.offer) {
		if isPaced(rule) {
			lines = append(lines, o.line(rule, call.resource))
		}
	}
	slices.SortFunc(lines, func(a, b *oracleLine) int {
		return cmp.Or(
			cmp.Compare(breadth(a.rule), breadth(b.rule)),
			cmp.Compare(len(b.rule.Match), len(a.rule.Match)),
			cmp.Compare(a.rule.Name, b.rule.Name),
		)
	})
	return lines
}

func breadth(rule flow.Rule) int {
	switch {
	case rule.Shared || rule.Related != "":
		return 2
	case rule.Origin == "":
		return 1
	}
	return 0
}

// leave takes a call out of a line. Who becomes the first is refused if its turn comes
// too late for it.
func (o *oracle) leave(l *oracleLine, call *oracleCall, now int64) {
	if l.waiting[0] != call {
		l.waiting = slices.DeleteFunc(l.waiting, func(c *oracleCall) bool { return c == call })
		return
	}
	l.waiting, l.since, l.expected = l.waiting[1:], now, 0
	if len(l.waiting) > 0 {
		if head := l.waiting[0]; l.headTurn() > head.deadline {
			o.refuse(head, now, l.rule)
		}
	}
}

// turnOf returns the turn that a call would get that comes now.
func (l *oracleLine) turnOf(call *oracleCall, now int64) (turn int64, ever bool) {
	if len(l.waiting) == 0 {
		return l.pacer.turn(now, call.tokens)
	}
	ahead, since := l.pacer.clone(), l.since
	if warm, ok := ahead.(*warmThrottle); ok {
		ahead = warm.plan()
	}
	for i, w := range l.waiting {
		since = max(since, w.at)
		if i == 0 {
			since = max(since, l.expected)
		}
		at, _ := ahead.turn(since, w.tokens)
		ahead.grant(at, w.tokens)
		since = at
	}
	return ahead.turn(max(since, now), call.tokens)
}

// refuse gives back what the call has taken, of which nobody has taken anything
// since, and its places.
func (o *oracle) refuse(call *oracleCall, now int64, rule flow.Rule) {
	o.verdicts[call.index] = verdict{wait: now - call.at, rule: rule.Name}
	for _, g := range slices.Backward(call.taken) {
		g.line.pacer = g.before
	}
	places := call.places
	call.places = nil
	for _, line := range places {
		o.leave(line, call, now)
	}
}

func (o *oracle) pass(call *oracleCall, now int64) {
	o.verdicts[call.index] = verdict{passed: true, wait: now - call.at}
	for _, rule := range o.applying(call.offer) {
		if !isPaced(rule) && rule.Related == "" {
			o.counter(rule, call.resource).count(now, call.tokens)
		}
	}
	for _, rule := range o.rules {
		if rule.Related == call.resource {
			o.counter(rule, rule.Resource).count(now, call.tokens)
		}
	}
}

// applying returns the enforced rules for a call. Patterns of tests are "*".
func (o *oracle) applying(call offer) (rules []flow.Rule) {
	named := func(origin string) bool {
		return origin != "" && slices.ContainsFunc(o.rules, func(r flow.Rule) bool {
			return r.Origin == origin && (r.Resource == call.resource || r.Match != "")
		})
	}
	for _, rule := range o.rules {
		onResource := rule.Resource == call.resource || rule.Match == "*"
		ofOrigin := rule.Origin == "" || rule.Origin == call.origin || rule.Origin == flow.OtherOrigins && !named(call.origin)
		if onResource && ofOrigin && !rule.Shadow {
			rules = append(rules, rule)
		}
	}
	slices.SortStableFunc(rules, func(a, b flow.Rule) int { return cmp.Compare(breadth(a), breadth(b)) })
	return rules
}

func isPaced(rule flow.Rule) bool {
	return rule.Algorithm == flow.Throttle || rule.Algorithm == flow.TokenBucket
}

func stateKey(rule flow.Rule, resource string) string {
	if rule.Match != "" && !rule.Shared {
		return rule.Name + "\x00" + resource
	}
	return rule.Name
}

func (o *oracle) counter(rule flow.Rule, resource string) counter {
	key := stateKey(rule, resource)
	if o.counters[key] == nil {
		o.counters[key] = newCounter(rule)
	}
	return o.counters[key]
}

func (o *oracle) line(rule flow.Rule, resource string) *oracleLine {
	key := stateKey(rule, resource)
	if o.lines[key] == nil {
		o.lines[key] = &oracleLine{rule: rule, pacer: newPacer(rule)}
	}
	return o.lines[key]
}

// offersOf returns the calls of a load in the order of their arrival.
func offersOf(load simulate.Load, end time.Duration) (offers []offer) {
	for _, s := range load.Streams {
		one := offer{resource: s.Resource, origin: s.Origin, tokens: int64(max(1, s.Tokens))}
		for _, at := range s.Times {
			if at < end {
				one.at = int64(at)
				offers = append(offers, one)
			}
		}
		if len(s.Times) > 0 {
			continue
		}
		until := int64(end)
		if s.Until > 0 {
			until = min(until, int64(s.Until))
		}
		for k := 0.0; ; k++ {
			one.at = int64(s.From) + int64(math.Round(k*1e9/s.Rate))
			if one.at >= until {
				break
			}
			offers = append(offers, one)
		}
	}
	slices.SortStableFunc(offers, func(a, b offer) int { return cmp.Compare(a.at, b.at) })
	return offers
}
