"""Grids of tables over budgets, sizes, metrics, objectives and intervals, with an index."""
