package main

import (
	"flag"
	"os"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestMain lets more tests run at once than there are processors: they wait more than they compute.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "3"); err != nil {
		panic(err)
	}
	failed := m.Run()
	if chromium.browser != nil {
		_ = chromedp.Cancel(chromium.browser)
	}
	os.Exit(failed)
}
