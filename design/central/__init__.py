"""Mechanisms of a trusted server, which sees messages as they are and adds the noise: references for all who trust less."""
