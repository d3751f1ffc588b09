"""Mechanisms of the local trust model for unit vectors: caps of the sphere, projections of them, and few bits for them."""
