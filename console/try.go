package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/recording"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

const (
	// tryTimeout is how long rules may be tried, recording included.
	tryTimeout = 45 * time.Second

	tryLast   = 2 * time.Minute  // of calls that instances have recorded are tried
	tryLess   = 20 * time.Second // where these are too many
	tryRecord = 10 * time.Second // of an instance that has recorded none

	maxTryBytes = 8 << 20 // of the recordings of all instances
	maxTryCalls = 300_000 // the latest of them
	maxTryRows  = 20      // of each table
)

// tried is what a draft would have done to recorded calls, beside the documents in etcd and what happened.
type tried struct {
	simulate.ReplayReport
	Failed []instanceShown `json:"failed"` // instances whose calls are missing
}

// try replays the latest calls under a draft. Rules are tried one draft at a time.
func (h *handler) try(r request) (any, error) {
	d, err := decode[draft](r)
	if err != nil {
		return nil, err
	}
	if h.Store == nil {
		return nil, errNoStore
	}
	select {
	case h.trying <- struct{}{}:
		defer func() { <-h.trying }()
	default:
		return nil, errConflict{"somebody else tries rules at the moment: wait until that is over"}
	}
	ctx, cancel := context.WithTimeout(r.Context(), tryTimeout)
	defer cancel()
	t, err := h.replay(ctx, d)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("trying takes longer than %v: %w", tryTimeout, err)
	}
	return t, err
}

func (h *handler) replay(ctx context.Context, d draft) (t tried, err error) {
	contents, err := pull(ctx, h.Store)
	if err != nil {
		return t, explained(err)
	}
	if found := h.judge(contents.Documents, d).Problems; len(found) > 0 && d.Text != "" {
		return t, errRequest{"the document has mistakes: " + found[0].Text}
	}
	every := func(string) bool { return true }
	present, next := h.rulesOf(contents.Documents, every), h.rulesOf(replaced(contents.Documents, d), every)
	calls, failed, err := h.record(ctx)
	if err != nil {
		return t, err
	}
	if calls == nil || len(calls.Calls) == 0 {
		return tried{Failed: failed}, nil
	}
	lists, notes, err := h.listsFor(ctx, calls, &present, &next)
	if err != nil {
		return t, err
	}
	report, err := simulate.Replay(ctx, calls, next, simulate.ReplayOptions{Against: &present, Kinds: h.Kinds, Lists: lists})
	if err != nil {
		return t, err
	}
	report.States = nil
	report.Notes = append(report.Notes, notes...)
	report.Resources = report.Resources[:min(len(report.Resources), maxTryRows)]
	report.Origins = report.Origins[:min(len(report.Origins), maxTryRows)]
	report.Values = report.Values[:min(len(report.Values), maxTryRows)]
	report.Rules = report.Rules[:min(len(report.Rules), maxTryRows)]
	return tried{report, failed}, nil
}

// listsFor returns the lists that rules name, for calls with the values that they look for: of hashes, rules
// that name lists are not judged. It says what is not there.
func (h *handler) listsFor(ctx context.Context, calls *recording.Recording, sets ...*rules.Set) (of *list.Registry, notes []string, err error) {
	of = list.NewRegistry()
	if calls.Hashed {
		return of, nil, nil
	}
	names := make(map[string]bool)
	for _, set := range sets {
		for r := range h.kinds.All(*set) {
			for _, name := range r.Lists() {
				names[name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		found, err := h.listNamed(ctx, name)
		if mistake := (errRequest{}); errors.As(err, &mistake) {
			notes = append(notes, fmt.Sprintf("list %s is left out: %s", rule.Quote(name), mistake.text))
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		of.Set(name, found)
	}
	return of, notes, nil
}

// record returns the latest calls of this process or of all instances, and whose are missing.
func (h *handler) record(ctx context.Context) (*recording.Recording, []instanceShown, error) {
	failed := []instanceShown{}
	if h.Engine != nil {
		calls, err := h.Engine.Recorded(tryLast)
		if errors.Is(err, core.ErrNotRecording) {
			calls, err = h.Engine.Record(ctx, tryRecord)
		}
		return latest(calls), failed, err
	}
	all, err := h.fleet.list(ctx)
	if err != nil {
		return nil, nil, err
	}
	client := newRemoteClient(h.Dial, tryTimeout)
	defer client.CloseIdleConnections()
	parts, errs := make([]*recording.Recording, len(all)), make([]error, len(all))
	var asked sync.WaitGroup
	for n, i := range all {
		i.client = client
		asked.Go(func() { parts[n], errs[n] = i.record(ctx, maxTryBytes/int64(len(all))) })
	}
	asked.Wait()
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	var found []*recording.Recording
	for n, err := range errs {
		if err == nil {
			found = append(found, parts[n])
		} else {
			failed = append(failed, instanceShown{all[n].name, all[n].address, err.Error()})
		}
	}
	if len(found) == 0 {
		return nil, failed, nil
	}
	merged, err := recording.Merge(found...)
	return latest(merged), failed, err
}

// latest leaves out the calls before the latest ones.
func latest(of *recording.Recording) *recording.Recording {
	if of == nil || len(of.Calls) <= maxTryCalls {
		return of
	}
	of.Calls = of.Calls[len(of.Calls)-maxTryCalls:]
	for i := range of.Instances {
		of.Instances[i].From = max(of.Instances[i].From, of.Calls[0].At)
	}
	return of
}

var errTooLarge = errors.New("its recording is too large to be tried here: use penstock record")

// record returns the latest calls of an instance: those that it has recorded, or, of one that does not
// record, those of the next seconds.
func (i instance) record(ctx context.Context, most int64) (of *recording.Recording, err error) {
	if i.problem != "" {
		return nil, errors.New(i.problem)
	}
	for _, query := range []url.Values{{"last": {tryLast.String()}}, {"last": {tryLess.String()}}, {"for": {tryRecord.String()}}} {
		of, err = i.recording(ctx, query, most)
		failed := answerError{}
		if !errors.Is(err, errTooLarge) && (!errors.As(err, &failed) || failed.status != http.StatusConflict) {
			break
		}
	}
	return of, err
}

func (i instance) recording(ctx context.Context, query url.Values, most int64) (of *recording.Recording, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, i.base+"recording?"+query.Encode(), http.NoBody)
	if err != nil {
		return nil, err
	}
	if err := i.token.addTo(request); err != nil {
		return nil, err
	}
	err = exchange(i.client, request, http.StatusOK, func(body io.Reader) error {
		file, err := io.ReadAll(io.LimitReader(body, most+1))
		switch {
		case err != nil:
			return err
		case int64(len(file)) > most:
			return errTooLarge
		}
		if of, err = recording.Read(bytes.NewReader(file)); err != nil {
			return errors.New(strings.TrimPrefix(err.Error(), "recording: "))
		}
		for n := range of.Instances {
			of.Instances[n].Name = i.name
		}
		return nil
	})
	return of, i.token.hidden(err)
}
