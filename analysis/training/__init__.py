"""Federated training with any mechanism for vectors: models, clients, accounts and grids."""
