package inspect

import (
	"context"

	"github.com/penstock-go/penstock/core"
)

// The documents that have no name for programs.
type (
	EventSwap     = eventSwap
	ForcedKind    = forcedKind
	ListOnCopy    = listOnCopy
	MissingList   = missingList
	MissingSource = missingSource
	Readiness     = readiness
	SourceOnCopy  = sourceOnCopy
)

func EventsOf(engine *core.Engine, since uint64) Events { return eventsOf(engine, since) }

func QuotasOf(engine *core.Engine, query RuleQuery) (Quotas, error) { return quotasOf(engine, query) }

func StatusWithShares(ctx context.Context, engine *core.Engine) Status {
	return statusWithShares(ctx, engine)
}

// Bounds that tests look at from outside.
const (
	MaxAttributes    = maxAttributes
	MaxLimiters      = maxLimiters
	MaxResources     = maxResources
	MaxStreams       = maxStreams
	MaxValueLimiters = maxValueLimiters
	MaxValues        = maxValues
)

// StatusOf returns the status of the engine.
func StatusOf(engine *core.Engine) Status { return presentStatus(engine) }
