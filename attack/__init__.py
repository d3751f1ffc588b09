"""Attacks on quietbits by random cases for some minutes (`make attack`, docs/attack.md)."""
