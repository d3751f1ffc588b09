"""Which mechanism to use for a task: predicted errors, bits, guarantees and bounds of the whole registry, ranked."""
