"""Figures of the papers, drawn again from tidy result tables of `analysis`."""
