package flow

import (
	"math"
	"time"
)

// Never is the RetryAfter of a call that cannot pass however long it waits: the
// rule blocks all calls, or the call takes more tokens than the rule ever allows
// at once.
const Never = time.Duration(math.MaxInt64)
