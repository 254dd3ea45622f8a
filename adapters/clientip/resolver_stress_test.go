package clientip_test

import (
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adapters/clientip"
)

// There are more addresses than the resolver caches texts of.
func TestTextsAreRightForManyGoroutines(t *testing.T) {
	r := clientip.New(clientip.Options{})
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			for i := range 2000 {
				n := (i*7 + g) % 600
				ip := net.ParseIP(fmt.Sprintf("2001:db8:%x::1", n))
				address := clientip.Of(&net.TCPAddr{IP: ip})
				assert.Equal(t, ip.String(), r.Text(address))
				want := fmt.Sprintf("2001:db8:%x::/64", n)
				if n == 0 {
					want = "2001:db8::/64"
				}
				assert.Equal(t, want, r.PrefixText(address))
			}
		})
	}
	group.Wait()
}
