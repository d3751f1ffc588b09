"""Transforms of vectors before noise: rotations, rounding, sketches, redundant frames."""
