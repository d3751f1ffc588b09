"""Rounds that are run: clients, messages, estimates and their errors."""
