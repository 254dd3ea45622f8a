package inspect

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// Events are the events that an engine keeps, see [core.Engine.Events].
type Events struct {
	Time   time.Time `json:"time"`
	Events []Event   `json:"events"` // the oldest first

	// Last is the ID of the last of them, or of the one that was asked for if none has come since: ask
	// for those since Last next. There may be more already, as an answer is bounded.
	Last uint64 `json:"last"`

	// Missed says that events which came after the one that was asked for are gone: the engine does not
	// keep them any longer, or the process was started anew.
	Missed bool `json:"missed,omitempty"`
}

// Event is something that happened and that is rare. What does not belong to its type is left out:
// [core.EventType] tells what does.
type Event struct {
	ID   uint64         `json:"id"` // grows by one with each event, and over restarts of the process
	At   time.Time      `json:"at"`
	Type core.EventType `json:"type"`

	Source   string    `json:"source,omitempty"`
	Document string    `json:"document,omitempty"`
	Revision int64     `json:"revision,omitempty"`
	Resource string    `json:"resource,omitempty"`
	Kind     rule.Kind `json:"kind,omitempty"`
	Rule     string    `json:"rule,omitempty"`

	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
	Forced string `json:"forced,omitempty"` // the state that an operator has forced, when a limiter changed its own

	By    string    `json:"by,omitempty"`    // who forced it
	Until time.Time `json:"until,omitzero"`  // when what was forced ends by itself
	Ended bool      `json:"ended,omitempty"` // it has ended by itself

	Text  string `json:"text,omitempty"`
	Error string `json:"error,omitempty"`

	// Swap is what an event of the type swap changed.
	Swap *eventSwap `json:"swap,omitempty"`

	// RetryAfter is how long it takes, in seconds, until a call passes such as the one that was refused: 0
	// if that is not known. CannotPass says that it never does under the present rules.
	RetryAfter float64 `json:"retryAfter,omitempty"`
	CannotPass bool    `json:"cannotPass,omitempty"`

	// Skipped counts the events of the type that came just before and were left out, as there were too
	// many.
	Skipped uint64 `json:"skipped,omitempty"`
}

// eventSwap is how a set of rules differs from the one before.
type eventSwap struct {
	Rules   int `json:"rules"` // now in force
	Added   int `json:"added"`
	Changed int `json:"changed"`
	Removed int `json:"removed"`
}

// eventsOf returns the events that came after the one with an ID, or all that the engine keeps for 0.
func eventsOf(engine *core.Engine, since uint64) Events {
	found, missed := engine.Events(since)
	c := engine.Clock()
	of := Events{Time: timeOf(c, c.Now()), Events: make([]Event, len(found)), Last: since, Missed: missed}
	for i := range found {
		of.Events[i] = eventOf(&found[i], engine)
		of.Last = found[i].ID
	}
	return of
}

func eventOf(e *core.Event, engine *core.Engine) Event {
	of := Event{
		ID: e.ID, At: timeOf(engine.Clock(), e.At), Type: e.Type, Source: e.Source, Document: e.Document, Revision: e.Revision,
		Resource: e.Resource, Kind: e.Kind, Rule: e.Rule, From: e.From, To: e.To, Forced: e.Forced,
		By: e.By, Until: e.Until, Ended: e.Ended, Text: e.Text, Error: e.Err, Skipped: e.Skipped,
	}
	if e.Type == "swap" {
		of.Swap = &eventSwap{e.Rules, e.Added, e.Changed, e.Removed}
	}
	if e.RetryAfter == rule.Never {
		of.CannotPass = true
	} else {
		of.RetryAfter = e.RetryAfter.Seconds()
	}
	return of
}

// events answers with the events since the one that a request names.
func (h handler) events(w http.ResponseWriter, r *http.Request) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err == nil {
		err = checkParameters(values, "since")
	}
	var since uint64
	if err == nil && values.Has("since") {
		since, err = parseEventID(values.Get("since"))
	}
	if err != nil {
		answer(w, http.StatusBadRequest, Failure{err.Error()})
		return
	}
	of := eventsOf(h.engine, since)
	if _, asValue := w.(ContentWriter); asValue {
		answer(w, http.StatusOK, of)
		return
	}
	page := struct {
		Events
		Encoded []json.RawMessage `json:"events"` // in place of those of the page
	}{Events: of, Encoded: []json.RawMessage{}}
	size := 0
	for i := range of.Events {
		encoded, _ := json.Marshal(of.Events[i]) // never fails: it is texts and numbers
		page.Encoded, page.Last = append(page.Encoded, encoded), of.Events[i].ID
		if size += len(encoded); size > maxPageSize {
			break
		}
	}
	answer(w, http.StatusOK, page)
}

func parseEventID(text string) (uint64, error) {
	id, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("inspect: since is %s: it is the id of an event, or 0 for all", rule.Quote(text))
	}
	return id, nil
}
