"""Training data divided among clients: digits, and data in downloaded files."""
