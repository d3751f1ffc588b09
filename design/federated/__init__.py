"""A server's model over rounds: optimisers, states, histories and packages."""
