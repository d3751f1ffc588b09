"""Figures of the papers, drawn again: each takes a tidy result table from `analysis` and makes a picture of it."""
