package etcd

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// maxInspect is how many bytes the address of a handler may have: the longest name of a host, and a
// port.
const maxInspect = 253 + len(":65535")

// CheckInspect returns an error if a text cannot be the address of the handler of an instance, as
// host:port. Whoever reads the address in a [Report] asks it before anything is dialed: who may write
// reports writes what they like.
func CheckInspect(address string) error {
	if len(address) > maxInspect {
		return fmt.Errorf("has %d bytes: the most is %d", len(address), maxInspect)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is not of the form host:port", address)
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
		return fmt.Errorf("%q has no port from 1 to 65535", address)
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		switch {
		case ip.IsUnspecified():
			return fmt.Errorf("%q names all addresses: say at which one others reach it", address)
		case ip.IsMulticast():
			return fmt.Errorf("%q is a multicast address", address)
		}
		return nil
	}
	return checkHost(host)
}

// checkHost returns an error if a text cannot be the name of a host.
func checkHost(host string) error {
	if host == "" {
		return errors.New("has no host: say at which one others reach it")
	}
	isOther := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != '_'
	}
	if strings.ContainsFunc(host, isOther) || strings.HasPrefix(host, "-") {
		return fmt.Errorf("has the host %q, which is neither an address nor a name", host)
	}
	return nil
}
