"""Everything that compares: data, experiments and reports."""
