package etcd_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/datasource/etcd"
)

func TestAddressesOfHandlersAreChecked(t *testing.T) {
	for _, good := range []string{"10.0.0.7:6060", "[::1]:6060", "[fe80::1%eth0]:1", "localhost:6060", "shop-1.shop.svc:65535", "127.0.0.1:1"} {
		assert.NoError(t, etcd.CheckInspect(good), good)
	}
	for bad, says := range map[string]string{
		"": "form host:port", "10.0.0.7": "form host:port", ":6060": "no host", "0.0.0.0:6060": "all addresses", "[::]:6060": "all addresses",
		"h:0": "no port", "h:65536": "no port", "h:http": "no port", "h:+1": "no port", "u@h:80": "neither an address nor a name",
		"h/x:80": "neither", "h\n:80": "neither", "a b:80": "neither", "<script>:80": "neither", "日本:80": "neither", "-h:80": "neither",
		"http://h:80": "form host:port", "224.0.0.1:80": "multicast", strings.Repeat("h", 300) + ":80": "has 303 bytes",
	} {
		assert.ErrorContains(t, etcd.CheckInspect(bad), says, bad)
	}
}
