"""Mechanisms whose server sees only the modular sum of the clients' messages."""
