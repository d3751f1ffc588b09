"""Accounts of pairs of distributions: Rényi curves, privacy losses, sampling, conversion."""
