"""Numbers of docs/secure-sum-cost.md."""

from quietbits.design.secure_sum.mask_cost import rate_at_equal_cost as rate_at_equal_cost
