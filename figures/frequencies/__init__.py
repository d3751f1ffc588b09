"""Figures of Chen, Özgür, Cormode, Bharadwaj 2023, and beyond."""
