"""Numerical tools on arrays: roots, linear programs, envelopes, integer rows, transforms."""
