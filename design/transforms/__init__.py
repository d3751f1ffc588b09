"""What a vector goes through before noise: rotation, dithering, rounding, redundant frames."""
