"""Decoders: from what a server has received back to a vector."""
