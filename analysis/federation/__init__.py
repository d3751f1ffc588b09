"""Federations of real clients over Flower: `quietbits[flower]`."""
