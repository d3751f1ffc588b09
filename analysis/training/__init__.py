"""Federated training with any mechanism for vectors: models, clients, accounting and grids."""
