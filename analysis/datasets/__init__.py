"""Training data divided among clients: scikit-learn's digits, and readers of downloaded files."""
