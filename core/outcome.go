package core

// MarkIgnored marks the call as one whose end tells nothing of what was called, as when
// its caller has left: a circuit breaker does not count it. It is for whoever has judged
// the call already, such as an adapter: [Config.IsFailure] is not asked. It takes the
// place of an earlier Fail or MarkFailed. It must not run at the same time as Exit, and
// does nothing after it.
func (g *Guard) MarkIgnored() {
	if g.resource != nil {
		g.mark(ignored)
	}
}
