package penstockkratos_test

import (
	"io"
	"testing"

	"github.com/go-kratos/kratos/v2/log"
	"go.uber.org/goleak"
	"google.golang.org/grpc/grpclog"
)

func TestMain(m *testing.M) {
	log.SetLogger(log.NewFilter(log.DefaultLogger, log.FilterLevel(log.LevelFatal+1)))
	// Clients of kratos ask for the health of servers, and grpc logs that these have none.
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	goleak.VerifyTestMain(m)
}
