// Package snapshot runs sources that read all documents of a store at once: it compares
// each state of the store with the one before and delivers what is new, keeps a last
// good state when the store cannot be read, and pauses between attempts. The source only
// has to read.
//
//	func (s *Source) Run(ctx context.Context, sink core.Sink) error {
//		return snapshot.Run(ctx, sink, s.options, s.read)
//	}
//
// The sources of Redis, Consul and Nacos are made of it. A test of a source runs the suite
// in datasource/sourcetest.
package snapshot
