"""The explorer: one offline page over a folder of certified tables."""
