"""Divergences of mechanisms' outputs for two inputs: a file per noise or mechanism."""
