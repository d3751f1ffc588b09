"""Federated training with any mechanism for vectors: models, clients, rounds, what they reveal and send; and grids of such runs."""
