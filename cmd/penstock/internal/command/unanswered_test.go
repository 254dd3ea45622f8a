package command

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWhyThereIsNoAnswer(t *testing.T) {
	dial := func(why error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: why} }
	for _, c := range []struct {
		method string
		err    error
		want   string
	}{
		{http.MethodGet, dial(errors.New("connection refused")), "dial tcp: connection refused: does the service run, and listen there?"},
		{http.MethodPost, dial(context.DeadlineExceeded), "dial tcp: context deadline exceeded: does the service run, and listen there?"},
		{http.MethodGet, context.DeadlineExceeded, "no answer in time (context deadline exceeded): it may be stopped or overloaded"},
		{http.MethodGet, io.EOF, "EOF: does the service run, and listen there?"},
		{http.MethodPost, context.DeadlineExceeded, "no answer in 10s (context deadline exceeded): it may be stopped or overloaded, and do it later: look before you try again"},
		{http.MethodPost, io.EOF, "no answer (EOF): it may have done it nevertheless: look before you try again"},
		{http.MethodPost, &net.OpError{Op: "read", Net: "tcp", Err: errors.New("connection reset by peer")}, "no answer (read tcp: connection reset by peer): it may have done it nevertheless: look before you try again"},
	} {
		err := unanswered(&url.Error{Op: c.method, URL: "http://secret", Err: c.err}, c.method)
		assert.EqualError(t, err, c.want)
		assert.ErrorIs(t, err, c.err)
	}
}
