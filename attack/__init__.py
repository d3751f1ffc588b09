"""Attacks on quietbits by random cases, for a number of minutes: `make attack`, see docs/attack.md."""
