"""Search for tables of few letters: linear programs for given letters, letter searches, starting points."""
