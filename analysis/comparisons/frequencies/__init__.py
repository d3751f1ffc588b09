"""Tables behind the figures of frequencies."""
