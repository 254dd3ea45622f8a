package consulsource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/internal/remote"
	"github.com/penstock-go/penstock/datasource/retry"
	"github.com/penstock-go/penstock/datasource/snapshot"
)

// minInterval is the least time between the starts of two requests that succeed. Consul
// answers a request for a prefix without keys whenever any key is removed or written.
const minInterval = 50 * time.Millisecond

// reader is the state of one call of [Source.Run]. Only its goroutine uses it.
type reader struct {
	*source
	client   *remote.Client
	index    uint64        // of the last answer; 0: the next request does not wait
	highest  uint64        // the index as read last, which failures do not reset
	askedAt  clock.Instant // when the last request began
	answered bool          // the last request succeeded
}

// answer is all that is below the prefix, as one server has it.
type answer struct {
	state snapshot.Snapshot
	index uint64
}

// next implements [snapshot.Next].
func (r *reader) next(ctx context.Context) (snapshot.Snapshot, error) {
	if r.answered {
		retry.Sleep(ctx, r.opts.Clock, minInterval-r.opts.Clock.Now().Sub(r.askedAt))
	}
	r.askedAt, r.answered = r.opts.Clock.Now(), false
	got, err := r.read(ctx, r.index, r.opts.MaxStale)
	if err == nil && got.index < r.highest && r.opts.MaxStale > 0 {
		got, err = r.read(ctx, 0, 0) // that server may only be behind
	}
	if err != nil {
		// A cluster that was replaced meanwhile may have the same index.
		r.index = 0
		return snapshot.Snapshot{}, fmt.Errorf("consul: reading %s: %w", r.prefix, err)
	}
	if got.index < r.highest {
		r.opts.Logger.Warn("penstock: Consul was restored or replaced, its documents are taken as they are",
			slog.String("source", r.Name()), slog.Uint64("index", got.index), slog.Uint64("previous", r.highest))
	}
	r.index, r.highest, r.answered = got.index, got.index, true
	return got.state, nil
}

// read sends one request. It waits for a change if index is not 0.
func (r *reader) read(ctx context.Context, index uint64, maxStale time.Duration) (got answer, err error) {
	request := remote.Request{
		Method:  http.MethodGet,
		Path:    "/v1/kv/" + escapePath(r.prefix),
		Query:   url.Values{"recurse": {"true"}},
		Header:  http.Header{},
		Timeout: r.opts.RequestTimeout,
	}
	for name, value := range map[string]string{"dc": r.opts.Datacenter, "ns": r.opts.Namespace, "partition": r.opts.Partition} {
		if value != "" {
			request.Query.Set(name, value)
		}
	}
	if maxStale > 0 {
		request.Query.Set("stale", "")
	} else {
		request.Query.Set("consistent", "")
	}
	if index > 0 {
		request.Query.Set("index", strconv.FormatUint(index, 10))
		request.Query.Set("wait", r.opts.WatchTimeout.Round(time.Millisecond).String())
		request.Timeout += r.opts.WatchTimeout + r.opts.WatchTimeout/16 // Consul adds up to a sixteenth
	}
	var token string
	if r.opts.Token != nil {
		if token, err = r.opts.Token(); err != nil {
			return answer{}, fmt.Errorf("getting a token: %w", err)
		}
		request.Header.Set("X-Consul-Token", token)
	}
	err = r.client.Do(ctx, request, func(response *http.Response) (err error) {
		got, err = r.answer(response, token, maxStale)
		return err
	})
	return got, err
}

// escapePath escapes a key for a path. Slashes stay.
func escapePath(key string) string {
	parts := strings.Split(key, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return strings.Join(parts, "/")
}

// answer returns what a response says, or why it cannot be taken for what Consul holds.
func (r *reader) answer(response *http.Response, token string, maxStale time.Duration) (got answer, err error) {
	// Consul answers 404 if there is no key. One without an index is not from Consul.
	header := response.Header
	if status := response.StatusCode; status != http.StatusOK && (status != http.StatusNotFound || header.Get("X-Consul-Index") == "") {
		return answer{}, refusal(response, token)
	}
	index, err := strconv.ParseUint(header.Get("X-Consul-Index"), 10, 64)
	if err != nil {
		return answer{}, errors.New("the answer has no index: is the address that of Consul?")
	}
	got.index = max(1, index) // 0 would not wait
	if header.Get("X-Consul-Knownleader") == "false" {
		return answer{}, errors.New("the server knows no leader")
	}
	if header.Get("X-Consul-Results-Filtered-By-Acls") == "true" {
		return answer{}, errors.New(`the token may not read all keys: it needs key_prefix "read"`)
	}
	if maxStale > 0 {
		contact, err := strconv.ParseInt(header.Get("X-Consul-Lastcontact"), 10, 64)
		if behind := time.Duration(contact) * time.Millisecond; err != nil || behind > maxStale {
			return answer{}, fmt.Errorf("the server has not heard from the leader for %v, Options.MaxStale is %v", behind, maxStale)
		}
	}
	if response.StatusCode == http.StatusOK {
		got.state.Documents, err = r.documents(response.Body)
	}
	if len(got.state.Documents) == 0 && err == nil && token == "" && header.Get("X-Consul-Default-Acl-Policy") == "deny" {
		return answer{}, errors.New("there are no documents that may be read without a token: set Options.Token")
	}
	got.state.Revision = int64(got.index)
	return got, err
}

// refusal returns the error of a response that is none.
func refusal(response *http.Response, token string) error {
	status, message := response.StatusCode, remote.Message(response, token)
	switch {
	case status == http.StatusForbidden:
		return fmt.Errorf(`the token is not accepted, or may not read the keys: it needs key_prefix "read" (status 403: %s)`, message)
	case status == http.StatusTooManyRequests:
		return fmt.Errorf("the agent has reached its limit of requests (status 429: %s)", message)
	case status == http.StatusInternalServerError && strings.Contains(message, "No cluster leader"):
		return fmt.Errorf("the cluster has no leader (status 500: %s)", message)
	case status == http.StatusNotFound:
		return errors.New("there is no key-value store at the address: is it that of Consul? (status 404)")
	default:
		return fmt.Errorf("status %d: %s", status, message)
	}
}

// pair is a key with its value, as Consul writes it.
type pair struct {
	Key         string
	Value       []byte
	CreateIndex int64
	ModifyIndex int64
}

// documents reads the documents in the body of an answer.
func (r *reader) documents(body io.Reader) (all []core.Document, err error) {
	decoder := json.NewDecoder(body)
	if _, err := decoder.Token(); err != nil {
		return nil, fmt.Errorf("the answer is not what Consul writes: %w", err)
	}
	for decoder.More() {
		var p pair
		if err := decoder.Decode(&p); err != nil {
			return nil, fmt.Errorf("the answer is not what Consul writes: %w", err)
		}
		name, below := strings.CutPrefix(p.Key, r.prefix)
		if !below {
			return nil, fmt.Errorf("the answer has the key %q, which is not below the prefix", p.Key)
		}
		if name == "" || strings.HasSuffix(name, "/") {
			continue // a folder
		}
		if len(all) == r.opts.MaxDocuments {
			return nil, fmt.Errorf("more documents than Options.MaxDocuments allows, which is %d: none was applied", r.opts.MaxDocuments)
		}
		d := snapshot.Document("consul", name, p.Value)
		d.Revision, d.Created = p.ModifyIndex, p.CreateIndex
		all = append(all, d)
	}
	if _, err := decoder.Token(); err != nil {
		return nil, fmt.Errorf("the answer has no end: %w", err)
	}
	return all, nil
}
