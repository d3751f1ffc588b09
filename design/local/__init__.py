"""Mechanisms of the local trust model: each client's message is private by itself."""
