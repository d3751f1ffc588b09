"""Figures of the DP-REC paper."""
