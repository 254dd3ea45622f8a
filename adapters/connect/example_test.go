package penstockconnect_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	penstockconnect "github.com/penstock-go/penstock/adapters/connect"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// exampleEngine lets one order be created an hour.
func exampleEngine() *core.Engine {
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	err := engine.Load(rules.Set{Flow: []flow.Rule{
		{Name: "orders", Resource: "/shop.Orders/Create", Limit: 1, Window: time.Hour},
	}})
	if err != nil {
		panic(err)
	}
	return engine
}

func ExampleServerInterceptor() {
	engine := exampleEngine()
	defer engine.Close()
	guard := penstockconnect.ServerInterceptor(engine, penstockconnect.Options{ShowRules: true})
	mux := http.NewServeMux()
	mux.Handle("/shop.Orders/Create", connect.NewUnaryHandler("/shop.Orders/Create", // what the generator makes
		func(_ context.Context, r *connect.Request[wrapperspb.StringValue]) (*connect.Response[wrapperspb.StringValue], error) {
			return connect.NewResponse(wrapperspb.String("created " + r.Msg.GetValue())), nil
		}, connect.WithInterceptors(guard)))
	server := httptest.NewServer(mux)
	defer server.Close()

	client := connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](server.Client(), server.URL+"/shop.Orders/Create")
	for _, order := range []string{"tea", "milk"} {
		reply, err := client.CallUnary(context.Background(), connect.NewRequest(wrapperspb.String(order)))
		if err == nil {
			fmt.Println(reply.Msg.GetValue())
			continue
		}
		var refused *connect.Error
		errors.As(err, &refused)
		fmt.Println(refused.Code(), refused.Meta().Get("RateLimit-Policy"), refused.Details()[0].Type())
	}
	// Output:
	// created tea
	// resource_exhausted "orders";q=1;w=3600 google.rpc.QuotaFailure
}

func ExampleClientInterceptor() {
	engine := exampleEngine()
	defer engine.Close()
	if err := engine.Load(rules.Set{Flow: []flow.Rule{{Name: "orders", Resource: "/shop.Orders/Create", Limit: 0}}}); err != nil {
		panic(err)
	}
	client := connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](http.DefaultClient, "http://orders.test/shop.Orders/Create",
		connect.WithInterceptors(penstockconnect.ClientInterceptor(engine, penstockconnect.Options{})))
	_, err := client.CallUnary(context.Background(), connect.NewRequest(wrapperspb.String("tea")))
	var block *core.BlockError
	if errors.As(err, &block) { // nothing was sent
		fmt.Println(connect.CodeOf(err), block.Rule)
	}
	// Output:
	// resource_exhausted orders
}
