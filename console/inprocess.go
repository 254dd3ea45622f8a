package console

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"reflect"

	"github.com/penstock-go/penstock/inspect"
)

// askInProcess asks a handler of this process what the package inspect answers. Nothing is encoded for that.
func askInProcess(ctx context.Context, handler http.Handler, at string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, http.NoBody)
	if err != nil {
		return err
	}
	to := received{header: make(http.Header)}
	handler.ServeHTTP(&to, request)
	if failure, failed := to.content.(inspect.Failure); failed {
		return answerError{to.status, failure.Error}
	}
	value, wanted := reflect.ValueOf(to.content), reflect.ValueOf(into).Elem()
	if to.status != http.StatusOK || !value.IsValid() || value.Type() != wanted.Type() {
		return fmt.Errorf("console: it answers %d with a %T, not with a %s", to.status, to.content, wanted.Type())
	}
	wanted.Set(value)
	return checkNumbers(into)
}

// received is an answer as a value, an [inspect.ContentWriter].
type received struct {
	header  http.Header
	status  int
	content any
}

func (r *received) Header() http.Header { return r.header }

func (r *received) WriteContent(status int, content any) { r.status, r.content = status, content }

func (r *received) WriteHeader(status int) { r.status = status }

func (r *received) Write(p []byte) (int, error) { return len(p), nil }

// inProcess sends requests to a handler of this process.
type inProcess struct{ handler http.Handler }

// RoundTrip implements [http.RoundTripper].
func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := &recorded{header: make(http.Header), status: http.StatusOK}
	p.handler.ServeHTTP(answer, r)
	return &http.Response{
		StatusCode: answer.status, Header: answer.header, Body: io.NopCloser(&answer.body), ContentLength: int64(answer.body.Len()), Request: r,
	}, nil
}

// recorded is an answer in memory.
type recorded struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorded) Header() http.Header { return r.header }

func (r *recorded) WriteHeader(status int) { r.status = status }

func (r *recorded) Write(p []byte) (int, error) { return r.body.Write(p) }
