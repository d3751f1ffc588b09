"""Contracts of all mechanisms: tasks, mechanisms, privacy, registry entries."""
