"""Numbers of docs/explanations/secure-sum-cost.md."""

from quietbits.design.secure_sum.aggregation import rate_at_equal_cost as rate_at_equal_cost
