"""Training data divided among clients: digits, and readers of downloaded files."""
