package rules

// WithDefaults returns a deep copy with every field that a rule leaves out
// filled in.
func (s Set) WithDefaults() Set {
	complete := Set{positions: s.positions}
	for _, d := range s.Serve {
		complete.Serve = append(complete.Serve, d.WithDefaults())
	}
	for _, l := range NewTable().of(s).lists {
		for _, r := range l.all(s) {
			l.add(&complete, r.WithDefaults())
		}
	}
	return complete
}
