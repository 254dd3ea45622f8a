package list_test

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/penstock-go/penstock/list"
)

// A rule that names a list holds its handle, and sees each list that is set.
func ExampleRegistry() {
	lists := list.NewRegistry()
	scrapers := lists.Handle("scrapers")
	fmt.Println("there is no list yet:", scrapers.List() == nil)
	for _, entry := range []string{"192.0.2.0/24", "198.51.100.0/24"} {
		var b list.Builder
		if err := b.Add(entry); err != nil {
			fmt.Println(err)
			return
		}
		of, err := b.Build(context.Background())
		if err != nil {
			fmt.Println(err)
			return
		}
		lists.Set("scrapers", of)
		fmt.Println(entry, scrapers.List().ContainsAddr(netip.MustParseAddr("192.0.2.7")))
	}
	// Output:
	// there is no list yet: true
	// 192.0.2.0/24 true
	// 198.51.100.0/24 false
}
