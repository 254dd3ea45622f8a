package core

import (
	"crypto/sha256"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rules"
)

// document is a rule document of a source: what the source holds now, and what
// of it is in force. The two differ when what it holds now cannot be applied.
type document struct {
	source string
	name   string

	held    version
	inForce version

	problem  error // why held is not in force; nil when it is
	reported bool  // problem is known to the operator
}

// version is one version of a document.
type version struct {
	revision int64
	digest   [sha256.Size]byte
	rules    rules.Set
	err      error // why there are no rules: not readable, or not sound
	at       clock.Instant
}

// hold takes note of what the source holds now.
func (d *document) hold(found Document) {
	next := version{revision: found.Revision, digest: sha256.Sum256(found.Data), err: found.Err}
	if next.err == nil && next.digest == d.held.digest || sameError(next.err, d.held.err) {
		// The same again, under another revision perhaps: neither read nor
		// reported a second time.
		d.held.revision = next.revision
		return
	}
	if next.err != nil {
		next.digest = [sha256.Size]byte{} // nothing was read
	} else {
		next.rules, next.err = rules.Parse(d.name, found.Data)
	}
	d.held, d.reported = next, false
}

func sameError(a, b error) bool { return a != nil && b != nil && a.Error() == b.Error() }

// apply notes that what the source holds is in force since now, if it was not
// before.
func (d *document) apply(now clock.Instant) {
	at := d.inForce.at
	if at == 0 || d.inForce.digest != d.held.digest {
		at = now
	}
	d.inForce = d.held
	d.inForce.at = at
	d.reported = false
}

// usable says whether what the source holds could be put in force.
func (d *document) usable() bool { return d.held.err == nil }

// choice is the version of a document that is to be in force: the one held, if
// it is usable and does not clash with other documents.
type choice struct {
	document *document
	version  *version
	held     bool
}

// choose settles which version of each document is to be in force, given that
// no name may stand for two rules. A version held whose names are taken by
// others is left out; its document keeps what is in force of it.
//
// Who has a name in force keeps it. Between newcomers the one that comes first
// in the list has it. The code's rules are always in force.
func choose(code rules.Set, documents []*document) []choice {
	choices := make([]choice, len(documents))
	for i, d := range documents {
		d.problem = d.held.err
		choices[i] = choice{document: d, version: &d.inForce}
		if d.usable() {
			choices[i].version, choices[i].held = &d.held, true
		}
	}
	for {
		loser, err := clash(code, choices)
		if loser == nil {
			return choices
		}
		loser.document.problem = err
		loser.version, loser.held = &loser.document.inForce, false
	}
}

// clash returns a choice that cannot stand beside the others, and why; nil if
// all can. What is in force stands: only a version held can lose.
func clash(code rules.Set, choices []choice) (*choice, error) {
	owners := make(map[rules.Key]*choice)
	for key := range code.Keys() {
		owners[key] = nil
	}
	for i := range choices {
		c := &choices[i]
		for key := range c.version.rules.Keys() {
			owner, taken := owners[key]
			if !taken {
				owners[key] = c
				continue
			}
			if owner == nil {
				return c, conflict(code, c)
			}
			if !c.held || owner.held && c.document.owns(key) {
				c, owner = owner, c
			}
			return c, conflict(owner.version.rules, c)
		}
	}
	return nil, nil
}

// conflict returns what is wrong with putting a choice beside rules in force.
func conflict(others rules.Set, c *choice) error {
	_, err := rules.Merge(others, c.version.rules)
	return err
}

// owns says whether a rule of the document has that name in force.
func (d *document) owns(key rules.Key) bool { return d.inForce.rules.Has(key) }
