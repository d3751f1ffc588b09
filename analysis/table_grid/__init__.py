"""Tables in bulk: a grid of budgets, sizes, metrics, objectives and intervals; an index."""
