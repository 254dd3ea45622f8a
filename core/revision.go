package core

// Revision returns the revision of the rule set in force, that of [Status], without
// a lock: for callers that remember what they computed from the rules. It grows
// with every change; that of a closed engine is the greatest uint64.
func (e *Engine) Revision() uint64 { return e.generation.Load() }
