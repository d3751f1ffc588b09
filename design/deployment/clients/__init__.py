"""What a deployed client computes, in the part of Python that `quietbits.design.deployment.translation` translates."""
