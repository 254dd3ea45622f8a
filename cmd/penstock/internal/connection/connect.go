package connection

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Interrupted is the text of the error of a request that was broken off.
const Interrupted = "interrupted"

// Connect returns a client of the etcd cluster, which has answered. The caller
// closes it.
func (s Settings) Connect(ctx context.Context) (*clientv3.Client, error) {
	tls, err := s.tls(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.reach(ctx, tls); err != nil {
		return nil, s.Explain(err)
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            s.Endpoints,
		TLS:                  tls,
		Username:             s.user,
		Password:             s.password,
		DialTimeout:          s.timeout,
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		Logger:               zap.NewNop(), // errors are told by who meets them
	})
	if err == nil {
		err = s.ask(ctx, client)
	}
	switch {
	case err == nil:
		return client, nil
	case client != nil:
		_ = client.Close()
	}
	if ctx.Err() == nil && isTimeout(err) {
		return nil, s.silent(tls != nil)
	}
	return nil, s.Explain(err)
}

// ask waits for an answer, whatever it is.
func (s Settings) ask(ctx context.Context, client *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	_, err := client.Get(ctx, s.Keys.Documents, clientv3.WithCountOnly())
	return err
}

func isTimeout(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded
}

// Explain returns an error of a request with what to do about it. Those of
// Connect are explained already.
func (s Settings) Explain(err error) error {
	user := fmt.Sprintf("the user %q", s.user)
	if s.user == "" {
		user = "a client without a user"
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), status.Code(err) == codes.Canceled:
		return errors.New(Interrupted)
	case is(err, rpctypes.ErrUserEmpty):
		return errors.New("etcd asks for a user: set --user or PENSTOCK_USER, and its password by PENSTOCK_PASSWORD or --password-file")
	case is(err, rpctypes.ErrAuthFailed):
		return fmt.Errorf("etcd does not know %s (%s) with that password (%s)", user, s.values["user"].from, s.secret.from)
	case is(err, rpctypes.ErrPermissionDenied):
		return fmt.Errorf("etcd does not allow %s to do this: it needs the right to read, and to change rules that to write, all keys that begin with %q: %w",
			user, strings.TrimSuffix(s.Keys.Documents, "/"), err)
	case status.Code(err) == codes.Unimplemented:
		return fmt.Errorf("%s answers, but not as etcd does: is it a proxy, or another service? %w", strings.Join(s.Endpoints, ", "), err)
	case isTimeout(err):
		return fmt.Errorf("etcd at %s did not answer in time: %w", strings.Join(s.Endpoints, ", "), err)
	default:
		return err
	}
}

// is tells whether an error of etcd is the one, however it was handed on.
func is(err, target error) bool {
	return errors.Is(err, target) || strings.Contains(err.Error(), rpctypes.ErrorDesc(target))
}
