package main

import (
	"testing"

	"github.com/chromedp/chromedp"
	esbuild "github.com/evanw/esbuild/pkg/api"
	"github.com/stretchr/testify/require"
)

// TestNumbersAreWrittenAsTheBrowserWritesThem compares the page's own way with that of the browser, which is slow to start.
func TestNumbersAreWrittenAsTheBrowserWritesThem(t *testing.T) {
	t.Parallel()
	page, address, _ := openBrowser(t)
	built := esbuild.Build(esbuild.BuildOptions{
		EntryPoints: []string{"../../console/page/dom.js"}, Bundle: true, Format: esbuild.FormatIIFE, GlobalName: "dom",
	})
	require.Empty(t, built.Errors)
	do(page, t, open(address+"/"), script("globalThis.dom = (() => {"+string(built.OutputFiles[0].Contents)+"; return dom })()"))
	wrong, err := chromedp.Run(page, chromedp.Evaluate[string](`(() => {
		const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 }), short = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
		const numbers = [0, 1, 9.99, 9.999, 12.34, 99.94, 99.99, 100, 100.4, 999, 1000, 1234.6, 123456, 1e6, 12345678.9, 2 ** 53, null, undefined, NaN];
		for (let n = 1e-6; n < 1e12; n *= 1.037) numbers.push(n);
		return [...numbers, ...numbers.map((n) => -n)].filter((n) => n !== 0 || 1 / n > 0).map((n) =>
			[dom.number(n), (Math.abs(n) >= 100 ? whole : short).format(n)]).filter(([is, want]) => is !== want && is !== want.replace("∞", "Infinity")).join("; ");
	})()`))
	require.NoError(t, err)
	require.Empty(t, wrong)
}
