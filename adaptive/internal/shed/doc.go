// Package shed chooses which calls an overloaded service refuses: those of the lowest
// priority first, and within a priority those of some callers rather than some calls of
// every caller.
//
// Every call has a rank, which is its priority and, within it, the position of its
// caller. A [Threshold] is a rank: calls at or above it are to pass. Callers get their
// positions from a hash with a secret seed. All positions move up by one step about every
// second and begin anew at the bottom, so that within a minute each caller has been
// everywhere: where a third of a priority passes, each caller is served for twenty
// seconds of every minute.
//
// The threshold is moved to where a wanted share of the arrivals is above it, by a
// histogram of their ranks. So it is in place after one step, however far that is. The
// scheme is that of DAGOR, the overload control of WeChat ("Overload Control for Scaling
// WeChat Microservices", 2018), which moves its threshold by a histogram too, in steps of
// a few percent.
package shed
