"""Attacks on quietbits by random cases, for a number of minutes: `make attack`, see docs/development/attack.md."""
