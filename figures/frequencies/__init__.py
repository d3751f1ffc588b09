"""Figures of Chen, Özgür, Cormode, Bharadwaj 2023, and extensions of them."""
