"""Linear codes of items, by which a secure sum shows the exact histogram, and nothing else."""
