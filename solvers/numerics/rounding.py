"""Rounding errors of bounds: the unit of errors, and slacks for chains of operations.

The slacks are for chains without cancellation. A sum, difference, product, quotient or square root of doubles is off by a factor of at most
1 + u, u = 2^-53. Exponentials, logarithms and powers of numpy, and of the C library below it, count as off by 4 u, and log-gamma by 8 u,
each several times the largest error in tests of these libraries. To first order, errors of factors add up, a power multiplies them by its
exponent, and a sum of n positive terms of at most k units has at most k + n units, whatever the order. An error in an argument x of exp is
multiplied by x. Where numbers of different signs cancel, the error is counted relative to the largest of them.
"""

UNIT = 2.0**-53
# Slack for chains of up to 9000 units: 9000 * 2^-53 < 1e-12. A comment beside each use counts the units.
SLACK = 1e-12
# Slack for closed forms of up to 90 units, 90 * 2^-53 < 1e-14: an exponential, a logarithm and ten other operations have 18.
SHORT_SLACK = 1e-14
