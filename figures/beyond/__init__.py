"""Figures that are in none of the papers."""
