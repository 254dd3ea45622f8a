package etcdtest

import "net"

// addresses are the host:port pairs that a server listens on. They must be known
// before the server starts.
type addresses struct {
	client string
	peer   string
}

// freeAddresses returns loopback addresses that are free at present.
func freeAddresses() (addresses, error) {
	client, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return addresses{}, err
	}
	defer func() { _ = client.Close() }()
	peer, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return addresses{}, err
	}
	defer func() { _ = peer.Close() }()
	return addresses{client: client.Addr().String(), peer: peer.Addr().String()}, nil
}
