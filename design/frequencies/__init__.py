"""Mechanisms for the frequencies of items."""
