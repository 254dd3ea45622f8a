package nacossource

import (
	"context"
	"crypto/md5" //nolint:gosec // what Nacos compares contents by
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/internal/remote"
	"github.com/penstock-go/penstock/datasource/retry"
	"github.com/penstock-go/penstock/datasource/snapshot"
	"github.com/penstock-go/penstock/rules"
)

const (
	// minInterval is the least time between two reads that succeed.
	minInterval = 100 * time.Millisecond

	pageSize     = 100  // documents in one answer
	maxListened  = 3000 // documents in one request that listens, as other clients have it
	minLongPoll  = 10 * time.Second
	longPollLead = 500 * time.Millisecond // Nacos answers that much earlier

	configsPath = "/v1/cs/configs"
)

// reader is the state of one call of [Source.Run]. Only its goroutine uses it.
type reader struct {
	*source
	client *remote.Client
	token  token

	known   map[string]string // the MD5 of each document as read last, by name
	readAt  clock.Instant     // when the last read that succeeded began; 0 after a failure
	pause   time.Duration     // the least time until the next read
	tooMany bool              // it was logged that not all documents are listened to
}

// next implements [snapshot.Next].
func (r *reader) next(ctx context.Context) (snapshot.Snapshot, error) {
	changed := false
	if r.readAt != 0 {
		var err error
		retry.Sleep(ctx, r.opts.Clock, r.pause-r.opts.Clock.Now().Sub(r.readAt))
		if changed, err = r.listen(ctx); err != nil {
			r.readAt = 0
			return snapshot.Snapshot{}, fmt.Errorf("nacos: listening to %s: %w", r.group, err)
		}
	}
	began := max(1, r.opts.Clock.Now())
	r.readAt = 0
	contents, err := r.readAll(ctx)
	if err != nil {
		return snapshot.Snapshot{}, fmt.Errorf("nacos: reading %s: %w", r.group, err)
	}
	var state snapshot.Snapshot
	read := make(map[string]string, len(contents))
	for name, content := range contents {
		state.Documents = append(state.Documents, content.document(name))
		read[name] = content.md5()
	}
	// A server whose cache is behind its database, or that has a beta version for this
	// address, tells of changes that cannot be read.
	if changed && maps.Equal(read, r.known) {
		r.pause = min(2*r.pause, r.opts.PollInterval)
	} else {
		r.pause = min(minInterval, r.opts.PollInterval)
	}
	r.readAt, r.known = began, read
	return state, nil
}

// content is what Nacos has of a document.
type content struct {
	text      string
	encrypted bool
}

func (c content) document(name string) core.Document {
	if c.encrypted {
		return core.Document{Name: name, Err: fmt.Errorf(
			"nacos: document %q is encrypted by a plugin of Nacos: publish it without the prefix cipher-", name)}
	}
	return snapshot.Document("nacos", name, []byte(c.text))
}

func (c content) md5() string {
	sum := md5.Sum([]byte(c.text)) //nolint:gosec // what Nacos compares contents by
	return hex.EncodeToString(sum[:])
}

// readAll returns all documents of the group. A document that was there before and is not
// listed any more is asked for: pages are not read at one time, so a removal may move a
// document to a page that was read already.
func (r *reader) readAll(ctx context.Context) (map[string]content, error) {
	contents, err := r.list(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(r.known)) {
		if _, listed := contents[name]; listed {
			continue
		}
		found, there, err := r.get(ctx, name)
		if err != nil {
			return nil, err
		}
		if there {
			contents[name] = found
		}
	}
	return contents, nil
}

// page is an answer to a search.
type page struct {
	TotalCount     *int
	PagesAvailable int
	PageItems      []struct {
		DataID           string `json:"dataId"`
		Group            string
		Content          *string
		EncryptedDataKey string
	}
}

// list returns the documents that a search for the group finds.
func (r *reader) list(ctx context.Context) (map[string]content, error) {
	contents := map[string]content{}
	for number := 1; ; number++ {
		p, err := r.page(ctx, number)
		if err != nil {
			return nil, err
		}
		if *p.TotalCount > r.opts.MaxDocuments {
			return nil, fmt.Errorf("%d documents are more than Options.MaxDocuments allows, which is %d: none was applied",
				*p.TotalCount, r.opts.MaxDocuments)
		}
		for _, item := range p.PageItems {
			if item.Group != r.group || item.DataID == "" {
				return nil, fmt.Errorf("the answer has a document of the group %q", item.Group)
			}
			found := content{encrypted: item.EncryptedDataKey != ""}
			if item.Content != nil {
				found.text = *item.Content
			} else if found, err = r.mustGet(ctx, item.DataID); err != nil {
				return nil, err
			}
			contents[item.DataID] = found
		}
		if number < p.PagesAvailable {
			continue
		}
		if len(contents) != *p.TotalCount {
			return nil, fmt.Errorf("the group changed while it was read: %d documents of %d", len(contents), *p.TotalCount)
		}
		return contents, nil
	}
}

func (r *reader) page(ctx context.Context, number int) (p page, err error) {
	query := r.query("")
	query.Set("search", "accurate")
	query.Set("pageNo", strconv.Itoa(number))
	query.Set("pageSize", strconv.Itoa(pageSize))
	err = r.do(ctx, remote.Request{Method: http.MethodGet, Path: configsPath, Query: query}, func(response *http.Response) error {
		if response.StatusCode != http.StatusOK {
			return r.refusal(response)
		}
		err := json.NewDecoder(response.Body).Decode(&p)
		if err == nil && p.TotalCount == nil {
			err = errors.New("there is no count")
		}
		if err != nil {
			return fmt.Errorf("the answer is not what Nacos writes, is the address that of Nacos 2? %w", err)
		}
		return nil
	})
	return p, err
}

// query returns the parameters that name a document, or the group for "".
func (r *reader) query(name string) url.Values {
	return url.Values{"dataId": {name}, "group": {r.group}, "tenant": {r.opts.Namespace}}
}

// get reads one document, or returns that it is not there.
func (r *reader) get(ctx context.Context, name string) (found content, there bool, err error) {
	request := remote.Request{Method: http.MethodGet, Path: configsPath, Query: r.query(name)}
	err = r.do(ctx, request, func(response *http.Response) error {
		switch response.StatusCode {
		case http.StatusNotFound:
			return r.checkNotFound(response)
		case http.StatusOK:
		default:
			return r.refusal(response)
		}
		text, err := io.ReadAll(io.LimitReader(response.Body, rules.MaxDocumentSize+1))
		found = content{text: string(text), encrypted: response.Header.Get("Encrypted-Data-Key") != ""}
		there = true
		return err
	})
	return found, there, err
}

// checkNotFound returns an error if a 404 is not what Nacos answers for a document that is
// not there.
func (r *reader) checkNotFound(response *http.Response) error {
	if message := remote.Message(response); !strings.Contains(message, "config data not exist") {
		return fmt.Errorf("status 404 is not from Nacos: %s", message)
	}
	return nil
}

func (r *reader) mustGet(ctx context.Context, name string) (content, error) {
	found, there, err := r.get(ctx, name)
	if err == nil && !there {
		err = fmt.Errorf("the group changed while it was read: %q is gone", name)
	}
	return found, err
}

// listen returns when it is time to list the group: a document has changed, or the time
// for that has come.
func (r *reader) listen(ctx context.Context) (changed bool, err error) {
	names := slices.Sorted(maps.Keys(r.known))
	if len(names) > maxListened {
		names = names[:maxListened]
		r.warnTooMany()
	}
	if len(names) == 0 {
		retry.Sleep(ctx, r.opts.Clock, r.opts.PollInterval)
		return false, ctx.Err()
	}
	wait := max(r.opts.PollInterval, minLongPoll) + longPollLead
	bounded, stop := r.until(ctx, r.listTime())
	defer stop()
	err = r.do(bounded, remote.Request{
		Method: http.MethodPost, Path: configsPath + "/listener", Query: url.Values{},
		Form:    url.Values{"Listening-Configs": {r.listened(names)}},
		Header:  http.Header{"Long-Pulling-Timeout": {strconv.FormatInt(wait.Milliseconds(), 10)}},
		Timeout: wait + r.opts.RequestTimeout,
	}, func(response *http.Response) error {
		if response.StatusCode != http.StatusOK {
			return r.refusal(response)
		}
		n, err := io.Copy(io.Discard, response.Body) // the group is listed whatever it says
		changed = n > 0
		return err
	})
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(bounded), errTimeToList) {
		return false, nil
	}
	return changed, err
}

// listTime returns how long to listen at most. A server waits for at least ten seconds;
// where that is long enough, its answer is awaited.
func (r *reader) listTime() time.Duration {
	if r.opts.PollInterval < minLongPoll {
		return r.opts.PollInterval
	}
	return r.opts.PollInterval + r.opts.RequestTimeout
}

// listened returns the documents to listen to, as Nacos reads them.
func (r *reader) listened(names []string) string {
	const field, record = "\x02", "\x01"
	var text strings.Builder
	for _, name := range names {
		text.WriteString(name + field + r.group + field + r.known[name])
		if r.opts.Namespace != "" {
			text.WriteString(field + r.opts.Namespace)
		}
		text.WriteString(record)
	}
	return text.String()
}

// until returns a context that ends after d, for errTimeToList. The caller stops it.
func (r *reader) until(ctx context.Context, d time.Duration) (bounded context.Context, stop func()) {
	bounded, cancel := context.WithCancelCause(ctx)
	timer := r.opts.Clock.NewTimer(d)
	go func() {
		defer timer.Stop()
		select {
		case <-timer.C():
			cancel(errTimeToList)
		case <-bounded.Done():
		}
	}()
	return bounded, func() { cancel(nil) }
}

// errTimeToList ends a request that listens.
var errTimeToList = errors.New("time to list the group")

func (r *reader) warnTooMany() {
	if !r.tooMany {
		r.tooMany = true
		r.opts.Logger.Warn("penstock: not all documents in Nacos are listened to, changes of others are seen after an interval",
			slog.String("source", r.Name()), slog.Int("listened", maxListened), slog.Duration("interval", r.opts.PollInterval))
	}
}
