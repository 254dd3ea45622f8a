package etcd_test

import "github.com/penstock-go/penstock/core"

// failures is a sink that receives the errors of a source.
type failures chan error

func (f failures) Apply(core.Change)                         {}
func (f failures) Disconnected(err error)                    { f <- err }
func (failures) Document(string) (core.DocumentStatus, bool) { return core.DocumentStatus{}, false }

func (f failures) Status() core.SourceStatus { return core.SourceStatus{} }
