"""Figures of the MVU paper."""
