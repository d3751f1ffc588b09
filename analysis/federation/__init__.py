"""Federations of real clients over Flower, which `quietbits[flower]` installs."""
