"""Lower bounds for every mechanism: by bits, by privacy, by rate-distortion."""
