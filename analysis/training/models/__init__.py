"""Models whose gradients are computed for many clients at a time, in numpy."""
