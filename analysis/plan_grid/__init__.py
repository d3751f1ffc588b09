"""Plans of many tasks: a grid of tasks, planned in parallel, in one resumable table."""
