"""Search for private tables with few letters, by convex programs and local search.

The package also has the published methods of search.

Inputs x_i are evenly spaced on [0, 1], and letters a_j are on the same scale. Where a search takes `input_weights`, they are non-negative
weights of the rows' variances that sum to 1, or None to minimise the largest variance; `constraint` is the privacy constraint on every
column.
"""
