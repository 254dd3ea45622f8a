package consulsource_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/penstock-go/penstock/core"
	consulsource "github.com/penstock-go/penstock/datasource/consul"
)

// ExampleNew follows the rules of an application with a token that another program renews
// in a file.
func ExampleNew() {
	source, err := consulsource.New("https://consul.internal:8501", consulsource.Prefix("shop"), consulsource.Options{
		Token: func() (string, error) {
			token, err := os.ReadFile("/run/secrets/consul-token")
			return strings.TrimSpace(string(token)), err
		},
	})
	if err != nil {
		panic(err)
	}
	engine := core.New(core.Config{})
	defer engine.Close()
	if err := engine.Follow(context.Background(), source); err != nil {
		panic(err)
	}
	fmt.Println(source.Name())
	// Output: consul:penstock/shop/
}
