"""Mechanisms whose server sees a modular sum of messages alone, and that sum."""
