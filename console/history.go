package console

import (
	"context"

	"github.com/penstock-go/penstock/datasource/etcd/store"
	"github.com/penstock-go/penstock/inspect"
)

// historyScreen shows who has changed documents, when and why, and what became of it in the instances.
type historyScreen struct {
	h   *handler
	log *eventLog
}

// historyShown is what the page gets.
type historyShown struct {
	Pushes []store.Revision `json:"pushes"` // the newest first; nil if etcd does not say
	Events []loggedEvent    `json:"events"` // what was forced, switched and recharged, swaps and rejections
}

func (s *historyScreen) read(ctx context.Context) (any, error) {
	shown := historyShown{Pushes: []store.Revision{}, Events: []loggedEvent{}}
	all, err := s.h.fleet.list(ctx)
	if err != nil {
		return shown, err
	}
	shown.Events = s.log.read(ctx, all, func(e *inspect.Event) bool {
		switch e.Type {
		case "forced", "switch", "recharge", "swap", "rejection":
			return true
		}
		return false
	})
	if s.h.Store == nil {
		return shown, nil
	}
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	pushes, err := s.h.Store.History(ctx)
	if err != nil {
		shown.Pushes = nil
	} else if pushes != nil {
		shown.Pushes = pushes
	}
	return shown, err
}
