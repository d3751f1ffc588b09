"""Compositions: the privacy of different tasks together, from a file."""
