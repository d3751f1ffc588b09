"""Curves and the page of a grid of trainings."""
