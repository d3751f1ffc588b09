"""Deployed clients in other languages, translated from `quietbits.design.deployment.clients`."""
