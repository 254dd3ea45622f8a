// Package sourcetest is the suite that every source of rules passes: the promises of
// [core.Source], and what users rely on when a store or the network fails. It drives a
// real source with a real store and a network that can be cut.
//
// The test of a source tells the suite how to open a source and how to write to its
// store:
//
//	func TestSourceKeepsThePromisesOfSources(t *testing.T) {
//		sourcetest.Run(t, sourcetest.Harness{
//			NewStore: func(t *testing.T) sourcetest.Store { return newStore(t) },
//			Open: func(t *testing.T, s sourcetest.Store, opts sourcetest.Options) core.Source {
//				store := s.(*store)
//				source, err := consulsource.New(consulsource.Options{
//					Address: store.proxy.Address(), Token: "secret", MaxBackoff: 50 * time.Millisecond,
//					Logger: opts.Logger,
//				})
//				require.NoError(t, err)
//				return source
//			},
//			Secrets: []string{"secret"},
//			Lacks:   map[sourcetest.Feature]string{sourcetest.LongDocuments: "values have at most 512 KiB"},
//		})
//	}
//
// A [Proxy] between the source and a real server is most of a [Store]: it cuts
// connections for Stop, makes them work again for Start, and counts them. [Follow] and
// [Recorder] serve a source's own tests.
//
// It is a module of its own, so that a service that follows sources needs no test tools. For
// the same reason the tests of those sources of the root module are here, in internal.
//
// The suite waits for what has to happen, up to [Patience], and never sleeps.
package sourcetest
