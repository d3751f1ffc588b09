"""Attempts to refute a privacy guarantee by drawing from the mechanism."""
