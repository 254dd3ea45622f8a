// Package limit finds how many calls a service can have under way at once, from what its
// calls do: how many end in a second, how long they take, and how many are under way.
//
// By Little's law these are tied together: the calls under way are the throughput times the
// mean response time. The limit is what would be under way at the greatest throughput if no
// call had to wait in the service, and a little more. For that the [Control] needs the mean
// response time of a service that is not busy, which is its baseline. It learns that while
// few calls are under way, and under load by probes: for a moment it lowers the limit, and
// looks whether less gets done. A baseline is only ever raised by what was measured while
// few calls were under way. So a limit that is too high cannot make itself higher.
//
// There is no clock and no goroutine: whoever uses a Control hands it windows of time, one
// after the other, see [Control.Need] and [Control.Close].
package limit
