"""Functions of deployed clients, in the part of Python that `quietbits.design.deployment.translation` translates."""
