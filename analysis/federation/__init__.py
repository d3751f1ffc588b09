"""Mechanisms of the registry in a federation of real clients, over Flower: `quietbits[flower]`."""
