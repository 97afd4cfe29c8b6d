package eos

import "errors"

// The errors are named after the reaction that they ask for. An error that is none of them asks for the ordinary one:
// drop the overlays, take a new producer epoch, start the tasks from what the brokers say.
var (
	// ErrLost: the group no longer counts us as the owner. Drop everything and wait for the next assignment.
	ErrLost = errors.New("the partitions are no longer ours")
	// ErrFenced: another process uses our transactional id, or the coordinator has given up on our transaction. The
	// message of the broker does not tell which, so we recover; if it comes again and again, a second process has our
	// identity.
	ErrFenced = errors.New("fenced by a newer producer epoch")
	// ErrIdentity: another process uses our group.instance.id. Going on would throw it out, and it us, for ever.
	ErrIdentity = errors.New("another process uses this group_instance_id")
	// ErrConfig: no retry can help before a person changes something: authorization, versions, a topic that is missing.
	ErrConfig = errors.New("the cluster refuses this configuration")
)
