package httpsource_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	httpsource "github.com/penstock-go/penstock/datasource/http"
	"github.com/penstock-go/penstock/datasource/sourcetest"
)

func TestIndexIsReadAgainAfterTheFunctionOfTheTokenHasFailed(t *testing.T) {
	for how, fail := range map[string]func(){"panic": func() { panic("foreign") }, "Goexit": runtime.Goexit} {
		t.Run(how, func(t *testing.T) {
			const documents = 30 // more than are read at once
			var index []string
			handlers := map[string]http.HandlerFunc{"/index.json": func(w http.ResponseWriter, _ *http.Request) {
				_, _ = fmt.Fprintf(w, `{"documents": [%s]}`, strings.Join(index, ", "))
			}}
			for i := range documents {
				name := fmt.Sprintf("d%d.yaml", i)
				index = append(index, fmt.Sprintf(`{"name": %q}`, name))
				handlers["/"+name] = serve(fmt.Sprintf("flow: [{name: %q, resource: a, limit: 1}]", name))
			}
			s := newServer(t, byPath(handlers))
			var calls atomic.Int64
			source, err := httpsource.NewIndex(s.URL+"/index.json", httpsource.Options{
				Interval: 10 * time.Millisecond, MinBackoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond,
				Token: func() (string, error) {
					if n := calls.Add(1); n > 1 && n < 10 { // in each of the goroutines that read documents, the first time
						fail()
					}
					return "token", nil
				},
			})
			require.NoError(t, err)
			engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
			defer engine.Close()
			require.NoError(t, engine.Follow(t.Context(), source))
			require.Eventually(t, func() bool { return engine.Status().Rules == documents }, sourcetest.Patience, time.Millisecond)
		})
	}
}
