"""Sweeps: many settings, run in parallel, saved, resumed and summarised."""
