"""Local mechanisms for unit vectors: caps of the sphere, their projections, and short codes."""
