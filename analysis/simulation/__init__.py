"""Simulated rounds: clients, messages, estimates and their errors."""
