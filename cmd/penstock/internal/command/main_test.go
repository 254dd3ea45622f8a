package command_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/internal/longtest"
)

func TestMain(m *testing.M) {
	longtest.AtOnce(6)
	goleak.VerifyTestMain(m)
}
