"""Comparisons of mechanisms: data, simulations, trainings, audits, plans and sweeps."""
