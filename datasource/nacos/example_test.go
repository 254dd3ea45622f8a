package nacossource_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/penstock-go/penstock/core"
	nacossource "github.com/penstock-go/penstock/datasource/nacos"
)

// ExampleNew follows the rules of an application as a user whose password another program
// renews in a file.
func ExampleNew() {
	source, err := nacossource.New("https://nacos.internal:8848", nacossource.Group("shop"), nacossource.Options{
		Namespace: "production",
		Credentials: func() (user, password string, err error) {
			text, err := os.ReadFile("/run/secrets/nacos-password")
			return "shop", strings.TrimSpace(string(text)), err
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
	// Output: nacos:production/penstock-shop
}
