//go:build versions

// Package examples is what makes examples/go.mod require the newest version of every
// framework. In the workspace, all modules are tested with those; alone, with the oldest
// that they allow.
package examples

import (
	_ "connectrpc.com/connect"
	_ "github.com/cncf/xds/go/xds/data/orca/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	_ "github.com/evanw/esbuild/pkg/api"
	_ "github.com/go-chi/chi/v5"
	_ "github.com/go-kratos/kratos/v2"
	_ "github.com/gofiber/fiber/v3"
	_ "github.com/gofiber/utils/v2"
	_ "github.com/labstack/echo/v5"
	_ "github.com/prometheus/client_model/go"
	_ "github.com/redis/go-redis/v9"
	_ "github.com/redis/rueidis"
	_ "github.com/stretchr/testify/assert"
	_ "github.com/valyala/fasthttp"
	_ "go.etcd.io/etcd/api/v3/etcdserverpb"
	_ "go.etcd.io/etcd/client/pkg/v3/transport"
	_ "go.etcd.io/etcd/server/v3/embed"
	_ "go.opentelemetry.io/otel/metric"
	_ "go.opentelemetry.io/otel/trace"
	_ "go.uber.org/goleak"
	_ "go.uber.org/zap"
	_ "go.yaml.in/yaml/v4"
	_ "google.golang.org/genproto/googleapis/rpc/status"
	_ "modernc.org/sqlite"
	_ "pgregory.net/rapid"
)
