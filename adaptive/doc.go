// Package adaptive refuses calls that a service cannot do in time, the least important
// first, without being told how much the service can do.
//
// A [Rule] has a [Strategy], which is how it finds out:
//
//   - [Latency] measures response times and throughput, and finds the number of calls
//     under way at which the service does most. It needs to know nothing of the service.
//     Calls that come in a burst wait for a moment rather than being refused.
//   - [Threshold] refuses calls while a signal, such as the load or the mean response
//     time, is above a fixed value.
//
// A rule without a resource and a pattern is for all inbound calls of the service
// together.
package adaptive
