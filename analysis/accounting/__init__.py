"""Privacy over rounds and under sampling: what is the same for all mechanisms."""
