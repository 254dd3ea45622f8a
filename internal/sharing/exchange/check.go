package exchange

import (
	"errors"
	"fmt"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/places"
)

// errReply says that a store gave an answer that cannot be: more tokens than were asked for, or
// times in the past.
var errReply = errors.New("fleet: the backend does not count right")

// check returns what is wrong with a reply to a request, or nil. A store that answers so does
// not count for the limit.
func check(r *fleet.Request, reply *fleet.Reply) error {
	if r.Operation == fleet.ClaimPlaces || r.Operation == fleet.ClaimValuePlaces {
		if err := checkGrant(r, reply); err != nil {
			return fmt.Errorf("%w: limit %q: %w", errReply, r.Terms.Key, err)
		}
		return nil
	}
	most := max(r.Want, 0)
	ahead := max(r.Queue, r.Ahead, r.Terms.MaxWait)
	switch {
	case reply.Granted < 0 || reply.Granted > most:
		return fmt.Errorf("%w: limit %q: it granted %d tokens of %d", errReply, r.Terms.Key, reply.Granted, most)
	case reply.Delay < 0 || reply.Granted > 0 && reply.Delay > ahead:
		return fmt.Errorf("%w: limit %q: it granted tokens after %v, at most %v ahead", errReply, r.Terms.Key, reply.Delay, ahead)
	case reply.Valid < 0 || reply.Valid > ahead+r.Terms.Window:
		return fmt.Errorf("%w: limit %q: tokens of a window of %v are valid for %v", errReply, r.Terms.Key, r.Terms.Window, reply.Valid)
	case reply.Retry < 0 || reply.Reset < 0:
		return fmt.Errorf("%w: limit %q: retry (%v) and reset (%v) are in the past", errReply, r.Terms.Key, reply.Retry, reply.Reset)
	}
	return nil
}

func checkGrant(r *fleet.Request, reply *fleet.Reply) error {
	if r.Operation == fleet.ClaimValuePlaces {
		return places.CheckValueAnswer(r.Value, &reply.Value)
	}
	return places.CheckAnswer(r.Places, &reply.Places)
}
