"""Attacks on quietbits by random cases, for as many minutes as one gives them: `make attack`, described in docs/attack.md."""
