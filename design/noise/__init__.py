"""Exact samplers of discrete noise, and the random words that they draw from."""
