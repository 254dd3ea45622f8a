// Package penstock is flow control for services: rules limit how many calls of a
// resource pass in a time and how many are under way at once, and stop calls of what
// fails. It is the process-wide default engine, and enough for most services:
//
//	guard, err := penstock.Entry(ctx, "orders:create")
//	if err != nil {
//		return err // a *penstock.BlockError, or ctx's error while it waited
//	}
//	defer guard.Exit()
//
// A resource is anything that is called and worth protecting; it has a name. A rule
// limits the calls of a resource. A guard stands for one call that passed all rules.
// A shadow rule decides and counts as any other, but refuses nothing.
//
// Rules come from code ([Load]), or from a source that [Follow] reads and that may
// change while the service runs. All functions are safe for concurrent use. Engines of
// your own are made by the package core.
package penstock
