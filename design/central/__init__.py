"""Mechanisms of the central trust model, which are references for all other trust models."""
