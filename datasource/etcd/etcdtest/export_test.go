package etcdtest

import "go.etcd.io/etcd/server/v3/embed"

// Etcd returns the embedded server, for tests that manipulate members of a cluster.
func (s *Server) Etcd() *embed.Etcd {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.etcd
}
