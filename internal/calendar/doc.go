// Package calendar divides time into windows of the calendar: days, weeks or months of a time
// zone, or several of them.
//
// Such windows differ in length. A day in which clocks are put forward has 23 hours, a month 28 to
// 31 days. A window that begins on the 31st begins on the last day of a shorter month.
package calendar
