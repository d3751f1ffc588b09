"""Rényi curves and privacy losses of pairs of distributions: composition, sampling, conversion."""
