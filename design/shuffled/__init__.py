"""Mechanisms whose messages arrive without their senders: shuffled, or counted in a secure sum."""
