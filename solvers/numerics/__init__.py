"""Numerical tools on arrays: safe roots, linear programs, envelopes, whole-number rows, fast transforms."""
