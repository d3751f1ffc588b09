"""Figures of trainings: curves, and the page of a grid."""
