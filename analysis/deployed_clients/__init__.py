"""Deployments of the registry's mechanisms, and rounds of their clients."""
