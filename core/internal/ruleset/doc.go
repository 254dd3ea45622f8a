// Package ruleset decides which rules are in force, given what the code and the
// documents of sources hold.
//
// A [Book] takes what is new, as [Book.Load] and [Book.Deliver] bring it, and returns
// an [Outcome]: the rules that come into force, change or go, and the documents that
// cannot be applied. It reads documents, keeps the last good version of each, resolves
// conflicts between rules of the same name, and holds back changes that remove too
// many rules. It knows no calls, no limiters and no clock, and takes no lock: whoever
// owns a book guards it.
//
// What is in force depends only on what the code and the sources hold now, never on
// the order in which it came: every instance of a service arrives at the same rules.
package ruleset
