package etcd_test

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/datasource/etcd"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var nowhere = clientv3.Config{Endpoints: []string{"127.0.0.1:1"}}

func TestSourceNameIsTheCompletePrefix(t *testing.T) {
	for _, prefix := range []string{"/penstock/shop/", "/penstock/shop", etcd.Prefix("shop")} {
		source, err := etcd.Open(nowhere, prefix, etcd.Options{})
		require.NoError(t, err)
		assert.Equal(t, "etcd:/penstock/shop/", source.Name())
	}
}

func TestInvalidArgumentsAreErrors(t *testing.T) {
	const prefix = "/penstock/shop/"
	for name, test := range map[string]struct {
		prefix string
		opts   etcd.Options
		says   string
	}{
		"no prefix":           {prefix: "", says: "the prefix is empty"},
		"prefix of slashes":   {prefix: "/", says: "the prefix is empty"},
		"no application":      {prefix: etcd.Prefix(""), says: "empty part"},
		"page size":           {prefix: prefix, opts: etcd.Options{PageSize: -1}, says: "Options.PageSize is negative"},
		"max documents":       {prefix: prefix, opts: etcd.Options{MaxDocuments: -1}, says: "Options.MaxDocuments is negative"},
		"request timeout":     {prefix: prefix, opts: etcd.Options{RequestTimeout: -1}, says: "Options.RequestTimeout is negative"},
		"watch timeout":       {prefix: prefix, opts: etcd.Options{WatchTimeout: -1}, says: "Options.WatchTimeout is negative"},
		"compare interval":    {prefix: prefix, opts: etcd.Options{CompareInterval: -1}, says: "Options.CompareInterval is negative"},
		"min backoff":         {prefix: prefix, opts: etcd.Options{MinBackoff: -1}, says: "Options.MinBackoff is negative"},
		"max backoff":         {prefix: prefix, opts: etcd.Options{MaxBackoff: -1}, says: "Options.MaxBackoff is negative"},
		"backoffs contradict": {prefix: prefix, opts: etcd.Options{MinBackoff: 2, MaxBackoff: 1}, says: "longer than MaxBackoff"},
		"long instance":       {prefix: prefix, opts: etcd.Options{Instance: strings.Repeat("x", 257)}, says: "Options.Instance has 257 bytes"},
		"inspect of nobody":   {prefix: prefix, opts: etcd.Options{Inspect: "h:1"}, says: "Options.Inspect is reported only with Options.Instance"},
		"inspect everywhere":  {prefix: prefix, opts: etcd.Options{Instance: "a", Inspect: ":6060"}, says: "Options.Inspect has no host"},
		"instance with slash": {prefix: prefix, opts: etcd.Options{Instance: "a/b"}, says: "Options.Instance \"a/b\" has slashes"},
		"instance with line":  {prefix: prefix, opts: etcd.Options{Instance: "a\nb"}, says: "control characters"},
		"instance not UTF-8":  {prefix: prefix, opts: etcd.Options{Instance: "\xff"}, says: "not UTF-8"},
		"several at once":     {prefix: "", opts: etcd.Options{PageSize: -1}, says: "PageSize"},
	} {
		t.Run(name, func(t *testing.T) {
			source, err := etcd.Open(nowhere, test.prefix, test.opts)
			require.ErrorContains(t, err, test.says)
			assert.Nil(t, source)
		})
	}
}

func TestUnusableClientIsAnError(t *testing.T) {
	_, err := etcd.New(nil, etcd.Prefix("shop"), etcd.Options{})
	require.ErrorContains(t, err, "no connection")
	_, err = etcd.New(clientv3.NewCtxClient(t.Context()), etcd.Prefix("shop"), etcd.Options{})
	require.ErrorContains(t, err, "no connection")
	_, err = etcd.Open(clientv3.Config{}, etcd.Prefix("shop"), etcd.Options{})
	require.ErrorContains(t, err, "Config.Endpoints is empty")
	twice := etcd.Options{Token: etcd.TokenFile("token")}
	configs := []clientv3.Config{{Username: "a", Password: "b"}, {}}
	if token := reflect.ValueOf(&configs[1]).Elem().FieldByName("Token"); token.IsValid() { // since version 3.7
		token.SetString("c")
	} else {
		configs = configs[:1]
	}
	for _, config := range configs {
		config.Endpoints = nowhere.Endpoints
		_, err = etcd.Open(config, etcd.Prefix("shop"), twice)
		require.ErrorContains(t, err, "Options.Token is set beside")
	}
}

func TestEitherBackoffAloneIsValid(t *testing.T) {
	for _, opts := range []etcd.Options{{MaxBackoff: time.Millisecond}, {MinBackoff: time.Minute}} {
		_, err := etcd.Open(nowhere, etcd.Prefix("shop"), opts)
		require.NoError(t, err)
	}
}

func TestRunReturnsWhenItsContextEnds(t *testing.T) {
	source, err := etcd.Open(nowhere, etcd.Prefix("shop"), etcd.Options{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(failures)
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx, failed) }()
	require.ErrorContains(t, <-failed, "etcd: watching /penstock/shop/: ")
	cancel()
	for {
		select {
		case err := <-failed: // of an attempt under way
			require.Error(t, err)
		case err := <-ended:
			require.ErrorIs(t, err, context.Canceled)
			return
		}
	}
}
