"""Data that models are trained on, divided among clients: scikit-learn's digits, and readers of files that a user has."""
