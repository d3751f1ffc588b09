"""What no mechanism can do better than: by bits, by privacy, by rate-distortion."""
