"""Mechanisms whose messages arrive without senders: shuffled, or counted."""
