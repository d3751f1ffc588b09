"""The certified optimum of tables: privacy as linear constraints, staircase rays, column generation, dual bounds."""
