package core

import "github.com/penstock-go/penstock/rules"

// Domains returns the domains of which requests of proxies are served, by their names, as documents
// and the code say: see [rules.Domain]. It is nil if nobody says anything. If several say different
// things of a domain, what those say that come first is in force, as it is with names of rules. The
// map never changes, and must not be changed; it takes no lock to get it.
func (e *Engine) Domains() map[string]rules.Domain {
	if of := e.domains.Load(); of != nil {
		return *of
	}
	return nil
}
