"""The planner: predicted errors, bits, guarantees and bounds of all mechanisms, ranked."""
