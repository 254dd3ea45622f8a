package core

import "github.com/penstock-go/penstock/rules"

// Load puts the rules that come from code in force, in place of those of the
// last Load; rules of sources stay. All changes at once: a call acts by the
// whole set before or by the whole set after; only a turn that it has waited for
// stays its own, unless the rule now blocks all. A rule that keeps its name and what it
// guards keeps what it has counted, however it counts now.
//
// A name stands for one rule, and rules from code come before those of sources: a
// rule whose name a document has too takes over from that of the document at once,
// with its state. The document's rule waits, which is reported as it is of documents
// that clash, and takes over in the swap in which the code's rule goes. So a rule
// moves from documents to code and back without a gap.
//
// Load keeps no reference to the set and does not write to it. When the set has
// a mistake, the error is [rules.Problems] and nothing changes. What it costs depends
// on how many rules are not the same, and at the same place, as before.
func (e *Engine) Load(set rules.Set) error {
	outcome, err := e.load(set)
	e.report(outcome)
	return err
}

func (e *Engine) load(set rules.Set) (outcome, error) {
	e.rules.mu.Lock()
	defer e.rules.mu.Unlock()
	if e.isClosed() {
		return outcome{}, ErrClosed
	}
	code := &e.rules.code
	differing := code.differing(set)
	if err := e.judge(set, differing); err != nil {
		return outcome{}, err
	}
	c := e.newChange()
	from := origin{sources: []string{"code"}, rules: code.given.Len()}
	code.give(set, differing)
	e.rules.edit(c, code, differing)
	return e.reconcile(c, nil, from), nil
}

// judge says what is wrong with a set that is to be the code's. It looks at what
// differs; only if that has a mistake it looks for all there are.
func (e *Engine) judge(set rules.Set, differing []int) error {
	picked := pick(set, differing)
	if !picked.Sound() {
		return set.Validate()
	}
	code := &e.rules.code
	fresh := make(map[string]struct{}) // names that do not stand where they stood
	for i, place := range differing {
		name := picked.Flow[i].WithDefaults().Name
		if place < len(code.flow) && code.flow[place].terms.Name() == name {
			continue
		}
		present := e.rules.flow[name]
		stays := present != nil && present.part == code &&
			present.index < len(set.Flow) && set.Flow[present.index].WithDefaults().Name == name
		if _, twice := fresh[name]; twice || stays {
			return set.Validate()
		}
		fresh[name] = struct{}{}
	}
	return nil
}
