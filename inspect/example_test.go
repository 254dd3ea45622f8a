package inspect_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/rules"
)

func ExampleHandler() {
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	_ = engine.Load(rules.Set{Flow: []flow.Rule{{Resource: "orders:create", Limit: 0}}})

	// In a service: http.ListenAndServe("127.0.0.1:6060", inspect.Handler(engine, inspect.Options{})).
	server := httptest.NewServer(inspect.Handler(engine, inspect.Options{}))
	defer server.Close()

	response, err := http.Get(server.URL + "/explain?resource=orders:create")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	var explanation inspect.Explanation
	if err := json.NewDecoder(response.Body).Decode(&explanation); err != nil {
		fmt.Println(err)
		return
	}
	for _, rule := range explanation.Rules {
		fmt.Printf("%s: %v, remaining: %d\n", rule.Name, rule.Fields, rule.State.Remaining)
	}
	// Output:
	// orders:create: [{resource orders:create} {limit 0}], remaining: 0
}

// A control handler on a listener that more than operators reach: it needs a token, and knows the
// name under which it is reached.
func ExampleControlHandler() {
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()

	// In a service the token comes from a secret. For some time there can be two.
	handler := inspect.ControlHandler(engine, inspect.Options{Tokens: []string{"secret"}, Hosts: []string{"orders.internal"}})

	request := httptest.NewRequest(http.MethodPost, "http://orders.internal:6060/control?kind=breaker&state=", http.NoBody)
	for _, authorization := range []string{"", "Bearer secret"} {
		request.Header.Set("Authorization", authorization)
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		fmt.Println(answer.Code)
	}
	// Output:
	// 401
	// 204
}
