package core

import (
	"cmp"
	"fmt"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// A name stands for one rule. When several parts have a rule of the same name, the
// first of them has its rule in force: the code, then the document that was created
// first, then the first by the names of source and document. That order depends
// on nothing but what the sources hold, so that it is the same on every instance,
// whenever it started. The rules of the others wait, and the next of them takes over
// in the very swap in which the one in force goes.

// precedes says whether the rules of p come before those of q when both have a
// rule of the same name.
func (p *part) precedes(q *part) bool { return p.compareClaims(q) < 0 }

func (p *part) compareClaims(q *part) int {
	if p.document == nil || q.document == nil {
		return p.compare(q)
	}
	return cmp.Or(
		cmp.Compare(p.created, q.created),
		cmp.Compare(p.document.source.name, q.document.source.name),
		cmp.Compare(p.document.name, q.document.name))
}

// claim gives a newcomer its name, if no other rule has it or waits for it.
func (b *ruleBook) claim(c *change, newcomer *flowRule) {
	name := newcomer.terms.Name()
	if b.flow[name] == nil && len(b.waiting[name]) == 0 {
		b.flow[name] = newcomer
		return
	}
	b.addWaiting(newcomer)
	c.contested[name] = struct{}{}
}

// resolve gives a name to the rule that comes first of those that want it.
func (b *ruleBook) resolve(c *change, name string) {
	if len(b.waiting[name]) == 0 {
		return
	}
	var first *flowRule
	for rule := range b.waiting[name] {
		if first == nil || rule.part.precedes(first.part) {
			first = rule
		}
	}
	holder := b.flow[name]
	if holder != nil && holder.part.precedes(first.part) {
		return
	}
	b.removeWaiting(first)
	if holder != nil {
		b.displace(c, holder)
	}
	b.flow[name] = first
	first.terms = flow.Compile(first.terms.Rule(), c.generation)
	c.newcomers = append(c.newcomers, first)
}

// displace makes a rule wait that had its name. If it is in force, what it has
// counted is taken over by the rule that has the name now.
func (b *ruleBook) displace(c *change, holder *flowRule) {
	if holder.inForce {
		c.released[holder.terms.Name()] = holder
		holder = &flowRule{terms: cmp.Or(holder.next, holder.terms), part: holder.part, index: holder.index}
		holder.part.flow[holder.index] = holder
	}
	b.addWaiting(holder)
	c.lose(holder.part)
}

// contest has the names of a part resolved anew, for its place in the order has
// changed.
func (b *ruleBook) contest(c *change, p *part) {
	if len(b.waiting) == 0 {
		return
	}
	for _, rule := range p.flow {
		if name := rule.terms.Name(); len(b.waiting[name]) > 0 {
			c.contested[name] = struct{}{}
		}
	}
}

func (b *ruleBook) addWaiting(rule *flowRule) {
	name := rule.terms.Name()
	if b.waiting[name] == nil {
		b.waiting[name] = make(map[*flowRule]struct{})
	}
	b.waiting[name][rule] = struct{}{}
	rule.part.waiting++
}

func (b *ruleBook) removeWaiting(rule *flowRule) {
	name := rule.terms.Name()
	rule.part.waiting--
	if delete(b.waiting[name], rule); len(b.waiting[name]) == 0 {
		delete(b.waiting, name)
	}
}

// lose takes note that a rule of a part waits now.
func (c *change) lose(p *part) {
	if p.document != nil {
		c.losers[p.document] = struct{}{}
	}
}

// conflict says which rules of a document are not in force, for other rules have
// their names: [rules.Problems]; nil if all are.
func (b *ruleBook) conflict(d *document) error {
	if d.part.waiting == 0 {
		return nil
	}
	if d.conflict == nil || d.conflictAt != b.revision {
		d.conflict, d.conflictAt = b.describeConflict(d), b.revision
	}
	return d.conflict
}

func (b *ruleBook) describeConflict(d *document) error {
	return d.part.given.Clashes(func(key rules.Key) (by string) {
		holder, index := b.find(key)
		if holder == nil || holder == &d.part {
			return ""
		}
		if holder.document == nil {
			return fmt.Sprintf("%s[%d], made in code, which comes before documents: "+
				"this one, of source %q, waits until that is gone", key.Kind, index, d.source.name)
		}
		at, _ := holder.given.Position(key.Kind, key.Name)
		return fmt.Sprintf("the rule at %v of source %q, which comes first: this one, of source %q, waits until that is gone",
			at, holder.document.source.name, d.source.name)
	})
}
