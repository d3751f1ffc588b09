"""Plots of accounts: epsilon against rounds."""
