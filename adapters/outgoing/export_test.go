package outgoing

// RetryBudget is the budget of one target.
type RetryBudget = retryBudget

// NewRetryBudget returns the budget of one target.
func NewRetryBudget(options RetryOptions) (*RetryBudget, error) {
	budgets, err := NewRetryBudgets(options)
	if err != nil {
		return nil, err
	}
	return budgets.others, nil
}

// Target returns the budget of a target.
func (b *RetryBudgets) Target(name string) *RetryBudget { return b.of(name) }

// Call counts a call that is not a retry.
func (b *retryBudget) Call() { b.call() }

// Allow reports whether a retry may be sent, and counts it if so.
func (b *retryBudget) Allow() bool { return b.allow() }

// Stats returns what the budget has done.
func (b *retryBudget) Stats() RetryStats { return b.stats() }
