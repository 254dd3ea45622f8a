package sharing_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/internal/longtest"
)

func TestMain(m *testing.M) {
	longtest.ShortChecks(20)
	goleak.VerifyTestMain(m)
}
