"""Mechanisms: encoding at the client, decoding at the server, and guarantees."""
