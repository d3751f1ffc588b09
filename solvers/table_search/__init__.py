"""Search for private tables with few letters, by convex programs and local search.

The package also holds the published search methods.

Inputs x_i are evenly spaced on [0, 1], and letters a_j are on the same scale. The argument `input_weights` of a search holds non-negative
weights of the rows' variances that sum to 1, or None to minimise the largest variance. The argument `constraint` is the privacy constraint
on every column.
"""
