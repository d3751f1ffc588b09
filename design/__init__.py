"""Mechanisms: what a client runs, what a server decodes, and what each one guarantees."""
