package etcd

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// TokenFile returns a function for [Options.Token] that reads the token from a
// file and trims white space around it. The function returns an error if the file
// cannot be read or is empty.
func TokenFile(path string) func() (string, error) {
	return func() (string, error) {
		data, err := os.ReadFile(path) //nolint:gosec // the caller names the file
		if err != nil {
			return "", fmt.Errorf("etcd: reading the token: %w", err)
		}
		token := strings.TrimSpace(string(data))
		if token == "" {
			return "", fmt.Errorf("etcd: reading the token: %s is empty", path)
		}
		return token, nil
	}
}

// withToken returns the configuration with the token added to each request.
func withToken(config clientv3.Config, token func() (string, error)) clientv3.Config {
	config.DialOptions = append(slices.Clone(config.DialOptions), grpc.WithPerRPCCredentials(tokenCredentials(token)))
	return config
}

// tokenCredentials call the function for the token of each request.
type tokenCredentials func() (string, error)

func (t tokenCredentials) GetRequestMetadata(context.Context, ...string) (fields map[string]string, err error) {
	defer func() {
		if value := recover(); value != nil { // in a goroutine of the client, where it would end the program
			err = fmt.Errorf("etcd: Options.Token has panicked: %v", value)
		}
	}()
	token, err := t()
	if err != nil {
		return nil, err
	}
	return map[string]string{rpctypes.TokenFieldNameGRPC: token}, nil
}

// RequireTransportSecurity returns false, as for the client's own tokens: the
// configuration decides whether the connection is encrypted.
func (tokenCredentials) RequireTransportSecurity() bool { return false }
