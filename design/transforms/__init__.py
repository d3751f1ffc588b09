"""Transforms of vectors before noise: rotation, dithering, rounding, redundant frames."""
