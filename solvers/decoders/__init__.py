"""Decoders: solvers that recover a vector from the server's observations."""
