"""Figures of Chen, Choquette-Choo, Kairouz, Suresh 2022, and extensions of them."""
