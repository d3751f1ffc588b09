"""Federations of real clients over Flower with mechanisms of the registry: `quietbits[flower]`."""
