"""Tables in bulk: every table of a grid of budgets, sizes, metrics, objectives and intervals, with an index."""
