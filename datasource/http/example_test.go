package httpsource_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/penstock-go/penstock/core"
	httpsource "github.com/penstock-go/penstock/datasource/http"
)

// A service follows the rules that a web server has.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "flow:\n  - {resource: orders, limit: 0}\n")
	}))
	defer server.Close()

	engine := core.New(core.Config{MaxRemoval: 0.5})
	defer engine.Close()
	source, err := httpsource.New(server.URL+"/shop/orders.yaml", httpsource.Options{
		Token: func() (string, error) { return "secret", nil },
	})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	if err := engine.Follow(ctx, source); err != nil {
		panic(err)
	}
	if err := engine.Ready(ctx); err != nil {
		panic(err)
	}

	_, err = engine.Entry(ctx, "orders")
	fmt.Println("blocked:", errors.Is(err, core.ErrBlocked))
	// Output: blocked: true
}
