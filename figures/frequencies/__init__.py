"""Figures of frequencies under a secure sum, and beside it."""
