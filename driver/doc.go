// Package driver runs a job's real tasks without a broker: the topics are logs in memory, the clock is moved by hand, and
// everything happens in the caller's goroutine, in the same order every time. The test command and our own stories use it.
//
// A driver is not safe for concurrent use. Nothing of a job is replaced: tasks start, restore, freeze and commit as in
// production, one transaction an epoch over all of them. Only the fetcher, the membership and the network are missing.
// Input is taken one record at a time in the order in which it was piped, also when it is taken again after a restart, so
// that a result which changes with the way to it is the job's fault, not the driver's.
package driver
