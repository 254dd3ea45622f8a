package console_test

import (
	"context"
	"io"
	"net/http"
	"sync"
)

// pagesOf names the variable with the address whose pages a child of the benchmark opens.
const pagesOf = "PENSTOCK_TEST_PAGES_OF"

// openPages opens pages, as browsers do, until the process is killed.
func openPages(address string) {
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, address+"/api/live?screen=overview", http.NoBody)
			if err != nil {
				return
			}
			if response, err := http.DefaultClient.Do(request); err == nil {
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
			}
		})
	}
	all.Wait()
}
