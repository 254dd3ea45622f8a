package main

import (
	"os"
	"testing"

	"github.com/penstock-go/penstock/internal/longtest"
)

func TestMain(m *testing.M) {
	longtest.AtOnce(3)
	os.Exit(m.Run())
}
