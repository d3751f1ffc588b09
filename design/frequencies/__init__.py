"""Mechanisms for the frequencies of items: what a client sends of its item, and what a server makes of all."""
