package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
)

// picturesIn names the variable with the directory into which the pictures of the docs are written:
//
//	PENSTOCK_PICTURES=../../docs/images go test -run Pictures
const picturesIn = "PENSTOCK_PICTURES"

// picture writes a picture of the page as it is, as high as it is up to a bound.
func picture(t *testing.T, name string, width int64) step {
	return func(page context.Context) error {
		if _, err := chromedp.Run(page, chromedp.EmulateViewport(width, 900)); err != nil {
			return err
		}
		height, err := chromedp.Run(page, chromedp.Evaluate[int64](`Math.min(1500, document.documentElement.scrollHeight)`))
		if err != nil {
			return err
		}
		if _, err := chromedp.Run(page, chromedp.EmulateViewport(width, height)); err != nil {
			return err
		}
		time.Sleep(2 * time.Second) // charts fit
		shot, err := chromedp.Run(page, chromedp.CaptureScreenshot())
		require.NoError(t, err)
		return os.WriteFile(filepath.Join(os.Getenv(picturesIn), "console-"+name+".png"), shot, 0o600)
	}
}

// TestPictures takes the pictures of the docs, of all screens after half a minute of load. It is skipped
// unless they are asked for.
func TestPictures(t *testing.T) {
	if os.Getenv(picturesIn) == "" {
		t.Skip("no pictures are asked for: " + picturesIn)
	}
	for _, isDark := range []bool{false, true} {
		page, address, s := openBrowser(t)
		ctx, cancel := context.WithCancel(t.Context())
		loaded := make(chan struct{})
		go func() { defer close(loaded); s.load(ctx) }()
		time.Sleep(45 * time.Second) // payments fail, and a minute is almost full
		if isDark {
			do(page, t, media(&emulation.MediaFeature{Name: "prefers-color-scheme", Value: "dark"}),
				open(address+"/"), shows("create-limit"), picture(t, "dark", 1360))
			do(page, t, visit("#/resource?name=POST%3A%2Forders"), shows("Hottest user"), picture(t, "resource-dark", 1360))
		} else {
			take(page, t, address, s)
		}
		cancel()
		<-loaded
	}
}

// take takes the pictures of the light screens.
func take(page context.Context, t *testing.T, address string, s *shop) {
	do(page, t, open(address+"/"), shows("create-limit"), picture(t, "overview", 1360), picture(t, "narrow", 390))
	for _, i := range s.instances {
		require.NoError(t, i.engine.Switch(core.Scope{Kind: "hotParam", Rule: "per-user"}, core.SwitchOff, core.Order{
			By: "alice", Reason: "u-48113 is a partner", For: 10 * time.Minute,
		}))
	}
	do(page, t, visit("#/resource?name=POST%3A%2Forders"), shows("Hottest user"), until(`document.querySelector('input[name="user"]')`),
		fill("user", "u-48113"), press("Explain"), shows("switched off"), picture(t, "resource", 1360), picture(t, "resource-narrow", 390))
	do(page, t, visit("#/rules?name=payments.yaml"), until(editorIsThere),
		write("# Payments fail now and then.\nflow:\n  - {name: pay-limit, resource: \"pay:charge\", limit: 3}\n"), shows("What changes"),
		press("Try"), shows("newly refused"), picture(t, "rules", 1360))
	for _, screen := range []string{"quotas", "fleet", "instances", "lists", "history"} {
		do(page, t, visit("#/"+screen), until(`document.querySelectorAll("#screen td, #screen .card").length > 1`), picture(t, screen, 1360))
	}
}
