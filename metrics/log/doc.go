// Package metriclog writes what happens on the resources of an engine, second by second, to
// files in the format of Sentinel's metric log, and finds lines in them.
//
//	go metriclog.Run(ctx, engine, metriclog.Options{Dir: "/var/log/shop", App: "shop"})
//
// It is for looking back: what was passed and refused in the second before an incident, on a
// machine without a metrics server. [Search] finds lines by time and resource, and so does
// the command penstock metrics.
//
// # Files
//
// A file has one line a second for each resource on which something happened:
//
//	1793361600000|2026-10-31 12:00:00|orders:create|120|31|118|2|14|0|9|0
//
// The fields are the second in milliseconds since 1970 and in local time, the resource, calls
// that passed, were blocked, completed and failed, the mean response time in milliseconds,
// occupied (always 0: Sentinel counts there what was borrowed from later seconds), the most
// calls under way at once, and the classification (always 0). A | and control characters in
// names are written as _.
//
// Files are named as Sentinel's: shop-metrics.log.2026-10-31, then …2026-10-31.1 and so on,
// each with an index of seconds in a file ….idx, which has two big-endian numbers of 64 bits
// for each second: seconds since 1970, and the offset of its first line. A run begins a file
// of its own, and another one each day and whenever a file is full; the oldest ones are
// removed. No more than MaxFiles · MaxFileSize is used, and one second beyond.
//
// # Exactness and faults
//
// A second is written one second after it has ended. Each call is in exactly one line: one that
// is counted after that, as by a goroutine that was delayed, is in the line of the next second. So
// the lines of a resource sum up to its totals. Calls of resources that the engine has forgotten
// before they were read are in lines of (other). Calls never wait for the disk, and none of this
// costs them anything.
//
// If a second cannot be written, as when the disk is full or the directory was removed, it is tried
// again each second in a new file. The engine knows for 58 seconds what happened in which second:
// older seconds are joined with the first one that it still knows, whose line has the calls of
// all of them. One line in the log of the process says so, and another one when it works again. What
// could not be written when the log ends is lost, and a third line says so.
//
// Lines that are damaged, as by a crash in the middle of a write, are skipped by [Search],
// which counts them.
package metriclog
