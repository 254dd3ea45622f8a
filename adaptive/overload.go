package adaptive

import (
	"sync"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/statechange"
	"github.com/penstock-go/penstock/rule"
)

const (
	// maxClasses is how many resources are told apart. The calls of others are one class.
	maxClasses = 1000

	// maxGroups is how many limits there are at most: the common one, and those of classes
	// that are slow while others are not.
	maxGroups = 9
)

// overload is what all versions of a rule with the strategy latency share: classes of calls, in
// groups that have a limit each. In the first group, the common one, are all classes but those
// that went apart.
type overload struct {
	mu      sync.Mutex // guards what follows, and all of groups and classes that is not atomic
	env     rule.Env
	current *version      // in force
	retired bool          // current is gone; a newer version may follow
	delay   *rule.Reading // how long goroutines wait for a processor
	state   string        // that was reported last
	changes statechange.Queue

	groups  [maxGroups]*group // those after the first as far as they were needed
	classes map[string]*class // nil if the rule is for one resource
	others  *class            // of that one, or of all that are not in classes
}

// newOverload begins with the first version of a rule.
func newOverload(v *version, env rule.Env) *overload {
	o := &overload{env: env, current: v, state: Normal, delay: new(rule.Reading)}
	if env.Signals != nil {
		o.delay = env.Signals.Reading(rule.SignalSchedulerDelay)
	}
	o.others = &class{weight: 1}
	o.groups[0] = newGroup(o, 0, env.Now)
	if v.rule.Shared {
		o.classes = make(map[string]*class)
	} else {
		o.groups[0].calls = &o.others.calls
	}
	o.groups[0].add(o.others, env.Now)
	return o
}

// classOf returns the class of a resource.
func (o *overload) classOf(resource string) *class {
	if o.classes == nil {
		return o.others
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.classes[resource]
	switch {
	case c != nil:
		return c
	case len(o.classes) >= maxClasses:
		return o.others
	}
	c = &class{name: resource, weight: 1}
	o.classes[resource] = c
	o.groups[0].add(c, o.groups[0].advanced)
	return c
}

// inUse returns the groups that have classes.
func (o *overload) inUse() []*group {
	var list []*group
	for _, g := range o.groups {
		if g != nil && len(g.classes) > 0 {
			list = append(list, g)
		}
	}
	return list
}

// activate puts a version in force if it is newer than the one that is. It returns whether
// the version is in force.
func (o *overload) activate(v *version, now clock.Instant) bool {
	if v.number > o.current.number {
		o.replace(v, now)
	}
	return v.number == o.current.number && !o.retired
}

// replace puts a newer version of the rule in force. The limits stay as far as the new
// version allows them, and so do waiting calls.
func (o *overload) replace(v *version, now clock.Instant) {
	former, r := &o.current.rule, &v.rule
	o.current, o.retired = v, false
	for _, g := range o.inUse() {
		if r.Shadow || r.Origin != former.Origin || r.Inbound != former.Inbound {
			g.releaseCalls() // the rule may not be one for them any more
		}
		g.control.SetBounds(r.MinLimit, r.MaxLimit)
		g.apply(now)
		if r.MaxDelay < former.MaxDelay {
			g.wakeAll() // their waits end sooner
		}
		g.publish()
	}
}

// retire ends all waits: the version in force is gone.
func (o *overload) retire(now clock.Instant) {
	o.retired = true
	for _, g := range o.inUse() {
		g.releaseCalls()
		g.openIfIdle(now)
		g.publish()
	}
}
