"""Figures that no paper contains."""
